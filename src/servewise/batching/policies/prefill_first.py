"""Whole prompts first, in steps of their own: Orca's iteration-level scheduling as vLLM v0 ran it (Yu et al. 2022)."""

from __future__ import annotations

from servewise.batching.batch import Chunk
from servewise.batching.policies.running import ContinuousBatcher
from servewise.batching.sequence import Sequence


class PrefillFirst(ContinuousBatcher):
    """While waiting prompts fit, a step computes as many whole prompts as the token budget takes; else it decodes.

    A prompt longer than the budget runs in a step alone.
    """

    decodes_beside_prompts = False

    def _chunks(self, preempted: bool) -> tuple[list[Chunk], list[Sequence]]:
        chunks: list[Chunk] = []
        admitted: list[Sequence] = []
        if self._waiting and not preempted:
            self._fill(chunks, admitted)
        return chunks, admitted

    def _fill(self, chunks: list[Chunk], admitted: list[Sequence]) -> None:
        budget = self.max_batched_tokens
        while self._waiting:
            if chunks and self._waiting[0].target_tokens > budget:
                return
            sequence = self._admit(0)
            if sequence is None:
                return
            admitted.append(sequence)
            if sequence.join:
                continue
            new = sequence.target_tokens - sequence.computed_tokens
            chunks.append(Chunk(sequence, sequence.computed_tokens, new, True))
            budget -= new
