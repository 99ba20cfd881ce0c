"""Blocks chunk by chunk, as vLLM v1 allocates them (v1/core/kv_cache_manager.py ``allocate_slots``, 0.19)."""

from __future__ import annotations

from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence


class ByChunk:
    """A sequence takes the blocks of its first chunk; each later chunk takes its own.

    ``whole_must_fit``: it is admitted only when its whole prompt would fit, though it takes the first chunk's blocks
    alone, so that others may be let in on the same free blocks (vLLM's ``scheduler_reserve_full_isl``).
    """

    grows = True
    by_chunk = True

    def __init__(self, pool: BlockPool, *, whole_must_fit: bool) -> None:
        self._pool = pool
        self._whole_must_fit = whole_must_fit
        self.eased_by_eviction = not whole_must_fit and pool.hash_block_tokens is not None

    def holds(self, sequence: Sequence) -> bool:
        """Prompt and output fit into the pool."""
        return sequence.prompt_tokens + sequence.output_tokens <= self._pool.capacity_tokens

    def admit(self, sequence: Sequence, most_new: int, spare: int) -> bool:
        """Take the blocks of the first chunk, after what the prefix cache has."""
        pool, whole = self._pool, sequence.stored_tokens or sequence.target_tokens
        if most_new >= whole or sequence.stored_tokens:
            return pool.admit(sequence, whole, spare)
        first = min(whole, pool.cached_prefix(sequence) * (pool.hash_block_tokens or 0) + most_new)
        if self._whole_must_fit:
            spare += pool.blocks_for(whole) - pool.blocks_for(first)
        return pool.admit(sequence, first, spare)
