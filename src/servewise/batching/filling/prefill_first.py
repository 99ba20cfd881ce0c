"""Whole prompts first, in steps of their own: Orca's iteration-level scheduling as vLLM v0 ran it (Yu et al. 2022)."""

from __future__ import annotations

from servewise.batching.batch import Chunk
from servewise.batching.filling.batcher import ContinuousBatcher, Planned, Preempted
from servewise.batching.sequence import Sequence


class PrefillFirst(ContinuousBatcher):
    """While waiting prompts fit, a step computes as many whole prompts as the token budget takes; else it decodes.

    A prompt longer than the budget runs in a step alone.
    """

    decodes_beside_prompts = False

    def _with_prompts(self, preempted: Preempted) -> Planned:
        chunks: list[Chunk] = []
        admitted: list[Sequence] = []
        if self._waiting and not preempted:
            self._fill(chunks, admitted)
        return chunks, admitted, preempted

    def _fill(self, chunks: list[Chunk], admitted: list[Sequence]) -> None:
        budget, waiting = self.max_batched_tokens, self._waiting
        waiting.arrange()
        while waiting:
            if chunks and waiting.head().target_tokens > budget:
                return
            sequence = self._admit(1 << 62, 0)
            if sequence is None:
                return
            admitted.append(sequence)
            if sequence.join:
                continue
            new = sequence.target_tokens - sequence.computed_tokens
            chunks.append(Chunk(sequence, sequence.computed_tokens, new, True))
            budget -= new
