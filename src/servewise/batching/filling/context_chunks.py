"""Decode first, then prompts in chunks of whole units, shared out by a policy: TensorRT-LLM's micro-batch scheduler."""

from __future__ import annotations

from collections.abc import Callable

from servewise.batching.batch import Chunk
from servewise.batching.filling.batcher import Planned, Preempted
from servewise.batching.filling.decode_first import DecodeFirst
from servewise.batching.sequence import Sequence

Shares = Callable[[list[int], int, int], list[int]]


def first_come(lefts: list[int], budget: int, unit: int) -> list[int]:
    """FIRST_COME_FIRST_SERVED: each takes what it can; what does not end its prompt is rounded down to whole units.

    >>> first_come([100, 100], 150, 32)
    [100, 32]
    """
    shares = []
    for left in lefts:
        share = min(left, budget)
        if share < left:
            share = share // unit * unit
        shares.append(share)
        budget -= share
    return shares


def equal_progress(lefts: list[int], budget: int, unit: int) -> list[int]:
    """EQUAL_PROGRESS: a unit to each in turn, while the budget takes whole ones.

    >>> equal_progress([100, 100], 150, 32)
    [64, 64]
    """
    shares, given = [0] * len(lefts), 1
    while given and budget > 0:
        given = 0
        for place, left in enumerate(lefts):
            more = min(unit, left - shares[place])
            if more <= budget:
                shares[place] += more
                budget -= more
                given += more
    return shares


class ContextChunks(DecodeFirst):
    """``setCtxRequestsChunkSize`` (batch_manager/microBatchScheduler.cpp), once not all prompts fit the budget.

    A newcomer is admitted where it gets tokens beside those already in their prompts. Other than in TensorRT-LLM one
    that gets none ends the step's admissions: a shorter one behind it does not pass.
    """

    unit = 32
    shares: Shares = staticmethod(first_come)

    def _with_prompts(self, preempted: Preempted) -> Planned:
        budget = self.max_batched_tokens - self.group.size * (1 + self.group.drafted)
        contexts = list(self._prefilling)
        lefts = [each.target_tokens - each.computed_tokens for each in contexts]
        admitted: list[Sequence] = []
        if budget > 0 and not preempted and self._waiting:
            self._waiting.arrange()
            while (sequence := self._newcomer(lefts, budget)) is not None:
                admitted.append(sequence)
                if sequence.join:
                    budget -= 1 + self.group.drafted
                else:
                    contexts.append(sequence)
                    lefts.append(sequence.target_tokens - sequence.computed_tokens)
        shares = zip(contexts, lefts, self.shares(lefts, budget, self.unit), strict=True)
        chunks = [Chunk(each, each.computed_tokens, share, share == left) for each, left, share in shares if share > 0]
        return chunks, admitted, preempted

    def _newcomer(self, lefts: list[int], budget: int) -> Sequence | None:
        if not self._waiting:
            return None
        head, pool = self._waiting.head(), self.pool
        if head.stored_tokens:
            if not self._row_fits(budget - sum(lefts)):
                return None
        else:
            left = head.target_tokens - pool.cached_prefix(head) * (pool.hash_block_tokens or 0)
            if not self.shares([*lefts, left], budget, self.unit)[-1]:
                return None
        return self._admit(budget, self._decode_growth())
