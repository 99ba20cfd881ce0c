"""The KV block pool: how many blocks are free, who shares which, what may be evicted.

A block holds ``block_tokens`` tokens of KV. Blocks are counted, not numbered: decisions depend on counts alone, and
an engine that needs addresses hands out its own for the counts decided here, in a child of the pool. Three kinds:

- free: never used, or with nothing worth keeping;
- held: private to one sequence, or shared under a hash by every sequence that has that prefix;
- kept: held by nobody, still in the cache, evicted least recently used first when free blocks run out.

A sequence that is released gives its blocks to the cache from its last to its first, so that the end of a prefix is
evicted before its beginning. That is vLLM's free queue (v1/core/block_pool.py: blocks freed in reverse order to its
end, taken from its front) and, leaf by leaf, SGLang's radix tree (mem_cache/radix_cache.py: the leaf used longest ago
goes first); tests hold the pool equal to a model of each. What a block without a hash holds nobody can find again: it
is free at once, as in SGLang and in vLLM since 2026 (before, it queued behind what had been released earlier). Other
than here, vLLM keeps both copies of a block that two sequences computed side by side.

Invariant (a property test holds it): free + held + kept == total.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from servewise.batching.sequence import Sequence
from servewise.errors import InputError


class BlockPool:
    """``total`` blocks of ``block_tokens`` tokens; None is a pool without limit.

    With ``hash_block_tokens`` prompts share leading blocks by hash (a hash names that many tokens, a multiple of
    ``block_tokens``); without it nothing is shared or kept. ``capacity_tokens`` is what the empty pool holds.
    """

    def __init__(self, total: int | None, block_tokens: int = 16, hash_block_tokens: int | None = None) -> None:
        if hash_block_tokens is not None and hash_block_tokens % block_tokens:
            raise InputError(
                f"hash blocks of {hash_block_tokens} tokens are no multiple of KV blocks of {block_tokens}",
                hint="choose a block size that divides the trace's",
            )
        self.total = total
        self.block_tokens = block_tokens
        self.hash_block_tokens = hash_block_tokens
        self.free = total if total is not None else 1 << 62
        self.capacity_tokens = self.free * block_tokens
        self.kept_blocks = 0
        self._per_hash = (hash_block_tokens or 0) // block_tokens
        self._holders: dict[int, int] = {}  # hash -> sequences that hold it
        self._kept: OrderedDict[int, None] = OrderedDict()  # hashes, least recently used first

    @property
    def available(self) -> int:
        """Blocks that an allocation can have: free ones, and kept ones by eviction."""
        return self.free + self.kept_blocks

    def blocks_for(self, tokens: int) -> int:
        """Blocks that ``tokens`` tokens take."""
        return -(-tokens // self.block_tokens)

    def cached_prefix(self, sequence: Sequence) -> int:
        """How many leading hash blocks of ``sequence`` are in the cache, at least one token left to compute."""
        if self.hash_block_tokens is None:
            return 0
        limit = min(len(sequence.block_hashes), (sequence.target_tokens - 1) // self.hash_block_tokens)
        found = 0
        for key in sequence.block_hashes[:limit]:
            if key not in self._holders and key not in self._kept:
                break
            found += 1
        return found

    def admit(self, sequence: Sequence, tokens: int, spare: int = 0) -> bool:
        """Give ``sequence`` blocks for ``tokens`` tokens, its cached prefix shared; False: there are not enough.

        ``spare`` blocks must stay available afterwards. Sets its ``shared``, ``blocks``, ``cached_tokens`` and
        ``computed_tokens``.
        """
        hits = self.cached_prefix(sequence) if sequence.block_hashes else 0
        private = -(-tokens // self.block_tokens) - hits * self._per_hash
        if private + spare > self.free:
            revived = self._per_hash * sum(map(self._kept.__contains__, sequence.block_hashes[:hits]))
            if private + spare > self.available - revived:
                return False
        if hits:
            self._hold(sequence.block_hashes[:hits])
            sequence.shared = hits
            sequence.computed_tokens = hits * (self.hash_block_tokens or 0)
        sequence.cached_tokens = sequence.computed_tokens
        sequence.blocks = private
        self.take(private)
        return True

    def make_free(self, blocks: int) -> None:
        """Evict kept blocks until ``blocks`` are free; the caller has checked ``available``."""
        if blocks > self.free:
            self._evict(blocks - self.free)

    def take(self, blocks: int) -> None:
        """Take ``blocks`` blocks, evicting kept ones as needed; the caller has checked ``available``."""
        if blocks > self.free:
            self._evict(blocks - self.free)
        self.free -= blocks

    def publish(self, sequence: Sequence) -> None:
        """Share, under their hashes, the full blocks that ``sequence`` has computed since it last did.

        Those of its answer only where its hashes name them: the last hash of a trace may be of a block that the prompt
        fills in part.
        """
        if self.hash_block_tokens is None:
            return
        computed = sequence.computed_tokens
        if not sequence.answer_hashed and computed > sequence.prompt_tokens:
            computed = sequence.prompt_tokens
        keys = sequence.block_hashes[sequence.shared : computed // self.hash_block_tokens]
        if keys:
            self._publish(sequence, keys)

    def discard(self, hashes: Iterable[int]) -> None:
        """Free the kept blocks under ``hashes`` at once: what they hold is not to be trusted."""
        for key in hashes:
            if key in self._kept:
                del self._kept[key]
                self.kept_blocks -= self._per_hash
                self.free += self._per_hash
                self._forget([key])

    def _forget(self, keys: list[int]) -> None:
        """Hash blocks left the cache; a pool that hands out addresses takes them back here."""

    def _publish(self, sequence: Sequence, keys: tuple[int, ...]) -> None:
        # Two sequences may compute one prefix side by side; the second joins the first's copy and frees its own.
        holders, kept = self._holders, self._kept
        if holders.keys().isdisjoint(keys) and kept.keys().isdisjoint(keys):
            holders.update(dict.fromkeys(keys, 1))
        else:
            there = tuple(key for key in keys if key in holders or key in kept)
            holders.update(dict.fromkeys(set(keys).difference(there), 1))
            self._hold(there)
            self.free += self._per_hash * len(there)
        sequence.shared += len(keys)
        sequence.blocks -= self._per_hash * len(keys)

    def release(self, sequence: Sequence) -> None:
        """Take back all blocks of ``sequence``; with a cache, keep those with a hash, its last the first to be evicted.

        The answer's blocks come into the cache here and not as they fill: until then only a sequence that generates
        the same could find them.
        """
        if sequence.block_hashes:
            self.publish(sequence)
            self._drop(sequence.block_hashes[: sequence.shared])
        self.free += sequence.blocks
        sequence.blocks = sequence.shared = 0

    def private_blocks(self, sequence: Sequence, tokens: int) -> int:
        """Blocks that ``sequence`` holds alone when ``tokens`` tokens of it are in the cache."""
        return self.blocks_for(tokens) - sequence.shared * self._per_hash

    def _hold(self, keys: tuple[int, ...]) -> None:
        for key in keys:
            if key in self._kept:
                del self._kept[key]
                self.kept_blocks -= self._per_hash
                self._holders[key] = 1
            else:
                self._holders[key] += 1

    def _drop(self, keys: tuple[int, ...]) -> None:
        holders, kept = self._holders, self._kept
        before = len(kept)
        for key in reversed(keys):
            left = holders[key] - 1
            if left:
                holders[key] = left
            else:
                del holders[key]
                kept[key] = None
        self.kept_blocks += self._per_hash * (len(kept) - before)

    def _evict(self, blocks: int) -> None:
        hashes = -(-blocks // self._per_hash)
        oldest = self._kept.popitem
        self._forget([oldest(False)[0] for _ in range(hashes)])
        self.kept_blocks -= hashes * self._per_hash
        self.free += hashes * self._per_hash
