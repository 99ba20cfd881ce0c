"""Decode first, then prompt chunks up to a token budget: vLLM v1 and Sarathi-Serve (Agrawal et al. 2024, alg. 3)."""

from __future__ import annotations

from servewise.batching.batch import Chunk
from servewise.batching.policies.running import ContinuousBatcher
from servewise.batching.sequence import Sequence


class DecodeFirst(ContinuousBatcher):
    """Every step decodes all running sequences; what is left of the budget goes to prompts, split where needed."""

    decodes_beside_prompts = True

    def _chunks(self, preempted: bool) -> tuple[list[Chunk], list[Sequence]]:
        budget = self.max_batched_tokens - self.group.size * (1 + self.group.drafted)
        chunks: list[Chunk] = []
        for sequence in self._prefilling:
            if budget <= 0:
                break
            budget -= self._chunk(sequence, budget, chunks)
        admitted: list[Sequence] = []
        if self._waiting and not preempted and budget > 0:
            self._fill(budget, chunks, admitted)
        return chunks, admitted

    def _fill(self, budget: int, chunks: list[Chunk], admitted: list[Sequence]) -> None:
        while budget > 0:
            sequence = self._admit(self.group.blocks_for_next() if self.group.grows else 0)
            if sequence is None:
                return
            admitted.append(sequence)
            budget -= 1 + self.group.drafted if sequence.join else self._chunk(sequence, budget, chunks)

    @staticmethod
    def _chunk(sequence: Sequence, budget: int, chunks: list[Chunk]) -> int:
        left = sequence.target_tokens - sequence.computed_tokens
        new = left if left <= budget else budget
        chunks.append(Chunk(sequence, sequence.computed_tokens, new, new == left))
        return new
