"""The longest cached prefix first: SGLang's ``schedule_policy=lpm`` (managers/schedule_policy.py, 0.5.6)."""

from __future__ import annotations

from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence
from servewise.batching.waiting.arrival import ArrivalQueue

LONGEST_SORTED = 128  # with more that wait, SGLang leaves them as they are: matching all would cost too much
SHARED_TOKENS = 32  # IN_BATCH_PREFIX_CACHING_{CHECK,DEPRIORITIZE}_THRESHOLD


class LongestPrefixQueue(ArrivalQueue):
    """Sorted by cached prefix whenever a prefill batch is formed; equals keep their order.

    Of those with hardly anything cached that share a prefix with each other, all but the first go last: once that one
    has computed it, it is a hit for the others. A preempted sequence goes to the end.
    """

    newest_last = False
    rejoins_last = True

    def __init__(self, pool: BlockPool) -> None:
        super().__init__()
        self._pool = pool

    def give_back(self, sequence: Sequence) -> None:
        """Behind the others."""
        self.append(sequence)

    def arrange(self) -> None:
        """Sort by what the cache holds now."""
        if not 1 < len(self) <= LONGEST_SORTED or self._pool.hash_block_tokens is None:
            return
        seen: set[int] = set()
        ranked = sorted([(self._rank(each, seen), place, each) for place, each in enumerate(self)])
        self.clear()
        self.extend(each for _, _, each in ranked)

    def _rank(self, sequence: Sequence, seen: set[int]) -> tuple[bool, int]:
        size = self._pool.hash_block_tokens or 0
        cached = self._pool.cached_prefix(sequence)
        if cached * size > SHARED_TOKENS:
            return False, -cached
        known = sequence.block_hashes[: sequence.target_tokens // size]  # of an answer only what is made already
        alike = 0
        for key in known:
            if key not in seen:
                break
            alike += 1
        if alike * size >= SHARED_TOKENS:
            return True, 0
        seen.update(known)
        return False, -cached
