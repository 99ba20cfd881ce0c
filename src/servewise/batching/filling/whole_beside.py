"""Decode first, and whole prompts beside it while they fit into what is left of the token budget."""

from __future__ import annotations

from servewise.batching.batch import Chunk
from servewise.batching.filling.batcher import Planned, Preempted
from servewise.batching.filling.decode_first import DecodeFirst
from servewise.batching.sequence import Sequence


class WholeBesideDecodes(DecodeFirst):
    """vLLM v1 with ``enable_chunked_prefill`` off, and TensorRT-LLM without ``enable_chunked_prefill``.

    The first prompt that does not fit into the rest of the budget ends the step's admissions. What could not be
    computed in one step, after a preemption at its last token even, is refused when it comes.
    """

    def _could_run(self, sequence: Sequence) -> bool:
        """Its prompt fits into a step, and so does, where it may be sent back, all that would be computed again."""
        again = sequence.output_tokens - 1 if self._admission.grows else 0
        return sequence.prompt_tokens + again <= self.max_batched_tokens and super()._could_run(sequence)

    def _with_prompts(self, preempted: Preempted) -> Planned:
        chunks: list[Chunk] = []
        budget = self._continue(chunks)
        admitted: list[Sequence] = []
        if budget > 0 and not preempted:
            self._fill(budget, 0, chunks, admitted)
        return chunks, admitted, preempted

    def _fill(self, budget: int, growth: int, chunks: list[Chunk], admitted: list[Sequence]) -> None:
        pool, waiting = self.pool, self._waiting
        waiting.arrange()
        while waiting:
            head = waiting.head()
            if not self._row_fits(budget):
                return
            if not head.stored_tokens:
                new = head.target_tokens - pool.cached_prefix(head) * (pool.hash_block_tokens or 0)
                if new > budget:
                    return
            sequence = self._admit(budget, growth + self._decode_growth())
            if sequence is None:
                return
            admitted.append(sequence)
            budget -= 1 + self.group.drafted if sequence.join else self._chunk(sequence, budget, chunks)
