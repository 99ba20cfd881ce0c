"""Decode first, then prompt chunks up to a token budget: vLLM v1 and Sarathi-Serve (Agrawal et al. 2024, alg. 3)."""

from __future__ import annotations

from servewise.batching.batch import Chunk
from servewise.batching.filling.batcher import ContinuousBatcher, Planned, Preempted
from servewise.batching.sequence import Sequence


class DecodeFirst(ContinuousBatcher):
    """Every step decodes all running sequences; what is left of the budget goes to prompts, split where needed.

    A chunk is of ``longest_chunk`` tokens at most.
    """

    longest_chunk = 1 << 62

    def _with_prompts(self, preempted: Preempted) -> Planned:
        chunks: list[Chunk] = []
        budget = self._continue(chunks)
        growth = 0
        if chunks and self._admission.by_chunk:
            while (growth := self._growth(chunks)) + self._decode_growth() > self.pool.available:
                preempted += self._relief()
                chunks = []
                budget = self._continue(chunks)
        admitted: list[Sequence] = []
        if budget > 0 and not preempted and self._waiting:
            self._fill(budget, growth, chunks, admitted)
        return chunks, admitted, preempted

    def _continue(self, chunks: list[Chunk]) -> int:
        """Chunks of those that are in their prompts; returns what is left of the budget."""
        group = self.group
        budget = self.max_batched_tokens - group.size * (1 + group.drafted)
        for sequence in self._prefilling:
            if budget <= 0:
                break
            budget -= self._chunk(sequence, budget, chunks)
        return budget

    def _growth(self, chunks: list[Chunk]) -> int:
        """Blocks that ``chunks`` take beyond those that their sequences hold."""
        private = self.pool.private_blocks
        return sum([max(0, private(each[0], each[1] + each[2]) - each[0].blocks) for each in chunks])

    def _decode_growth(self) -> int:
        group = self.group
        return group.blocks_for_next() if group.grows else 0

    def _fill(self, budget: int, growth: int, chunks: list[Chunk], admitted: list[Sequence]) -> None:
        waiting, group, longest = self._waiting, self.group, self.longest_chunk
        if not waiting.newest_last:
            waiting.arrange()
        while waiting and budget > 0 and self._row_fits(budget):
            spare = growth + group.blocks_for_next() if group.grows else growth
            sequence = self._admit(budget if budget < longest else longest, spare)
            if sequence is None:
                return
            admitted.append(sequence)
            budget -= 1 + self.group.drafted if sequence.join else self._chunk(sequence, budget, chunks)

    def _row_fits(self, budget: int) -> bool:
        """Whether who is next, if its KV is there already, may decode within ``budget``; alone it may always."""
        head = self._waiting.head()
        return not head.stored_tokens or budget == self.max_batched_tokens or self.group.tokens_to_join(head) <= budget

    def _chunk(self, sequence: Sequence, budget: int, chunks: list[Chunk]) -> int:
        computed = sequence.computed_tokens
        left = sequence.target_tokens - computed
        new = left if left <= budget else budget
        new = min(new, self.longest_chunk)
        chunks.append(Chunk(sequence, computed, new, new == left))
        return new
