"""The block pool: what is free, shared, kept and evicted, worked out by hand."""

from __future__ import annotations

import pytest

from servewise.batching.admission.by_chunk import ByChunk
from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence
from servewise.errors import InputError


def computed(pool: BlockPool, sequence: Sequence) -> Sequence:
    """``sequence`` admitted with its prompt computed and its full blocks published."""
    assert pool.admit(sequence, sequence.prompt_tokens)
    sequence.computed_tokens = sequence.prompt_tokens
    pool.publish(sequence)
    return sequence


def test_a_partly_filled_block_counts_whole() -> None:
    """17 tokens take two blocks of 16."""
    pool = BlockPool(10, 16)

    assert pool.admit(Sequence(0, 17, 1), 17)
    assert pool.free == 8


def test_a_prompt_that_does_not_fit_takes_nothing() -> None:
    """A refused admission leaves the pool as it was."""
    pool = BlockPool(2, 16)

    assert not pool.admit(Sequence(0, 33, 1), 33)
    assert pool.free == 2


def test_spare_blocks_stay_for_the_running_ones() -> None:
    """An admission may not use the blocks that decoding sequences need for their next token."""
    pool = BlockPool(3, 16)

    assert not pool.admit(Sequence(0, 32, 1), 32, spare=2)
    assert pool.admit(Sequence(0, 32, 1), 32, spare=1)


def test_a_second_prompt_shares_the_computed_prefix() -> None:
    """Blocks published under a hash are held once, by both."""
    pool = BlockPool(10, 16, 16)
    computed(pool, Sequence(0, 40, 1, (1, 2)))
    second = Sequence(1, 40, 1, (1, 2))

    assert pool.admit(second, 40)
    assert 32 == second.cached_tokens == second.computed_tokens
    assert pool.free == 10 - 3 - 1


def test_a_prefix_in_work_is_not_shared_yet() -> None:
    """Nothing is shared before it is computed."""
    pool = BlockPool(10, 16, 16)
    pool.admit(Sequence(0, 40, 1, (1, 2)), 40)
    second = Sequence(1, 40, 1, (1, 2))
    pool.admit(second, 40)

    assert second.cached_tokens == 0


def test_a_fully_cached_prompt_still_computes_its_last_token() -> None:
    """At least one token is left to compute, for its logits: 32 cached tokens of 32 give a hit of 16 (vLLM v1)."""
    pool = BlockPool(10, 16, 16)
    computed(pool, Sequence(0, 32, 1, (1, 2)))
    again = Sequence(1, 32, 1, (1, 2))
    pool.admit(again, 32)

    assert again.cached_tokens == 16


def test_released_blocks_are_kept_until_they_are_needed() -> None:
    """A later prompt finds the prefix of one that has ended."""
    pool = BlockPool(10, 16, 16)
    pool.release(computed(pool, Sequence(0, 40, 1, (1, 2))))
    again = Sequence(1, 40, 1, (1, 2))

    assert (pool.free, pool.kept_blocks) == (8, 2)  # the third block is filled in part: nobody can find it again
    assert pool.admit(again, 40)
    assert again.cached_tokens == 32


def test_the_least_recently_used_prefix_is_evicted_first() -> None:
    """With room for two prefixes the one that was used longest ago goes."""
    pool = BlockPool(6, 16, 16)
    for serial, key in enumerate((100, 200, 100)):
        pool.release(computed(pool, Sequence(serial, 17, 1, (key,))))
    pool.release(computed(pool, Sequence(9, 65, 1, (300, 301, 302, 303))))  # 5 blocks where 4 are free
    left = {key: pool.cached_prefix(Sequence(10, 33, 1, (key,))) for key in (100, 200)}

    assert left == {100: 1, 200: 0}


def test_a_prefix_is_evicted_from_its_end() -> None:
    """The last blocks of a prefix go before its first ones, so that what is left can still be hit."""
    pool = BlockPool(4, 16, 16)
    pool.release(computed(pool, Sequence(0, 49, 1, (1, 2, 3))))
    pool.take(2)

    assert pool.cached_prefix(Sequence(1, 49, 1, (1, 2, 3))) == 2


def test_a_prefix_in_use_is_never_evicted() -> None:
    """Blocks that a running sequence holds are not available."""
    pool = BlockPool(4, 16, 16)
    computed(pool, Sequence(0, 49, 1, (1, 2, 3)))

    assert pool.available == 0
    assert not pool.admit(Sequence(1, 17, 1), 17)


def test_revived_blocks_do_not_count_twice() -> None:
    """A kept prefix that the admission itself revives cannot be evicted for the rest of its prompt."""
    pool = BlockPool(4, 16, 16)
    pool.release(computed(pool, Sequence(0, 48, 1, (1, 2, 3))))
    again = Sequence(1, 80, 1, (1, 2, 3))

    assert not pool.admit(again, 80)
    assert (pool.free, pool.kept_blocks) == (1, 3)


def test_hash_blocks_must_be_whole_kv_blocks() -> None:
    """512-token hashes over 48-token blocks are refused with the cure."""
    with pytest.raises(InputError, match="no multiple"):
        BlockPool(10, 48, 512)


def test_room_made_ahead_is_what_taking_would_evict() -> None:
    """``make_free`` then ``take`` leaves the pool as ``take`` alone does; room that is there evicts nothing."""
    pools = [BlockPool(4, 16, 16) for _ in range(2)]
    for pool in pools:
        pool.release(computed(pool, Sequence(0, 49, 1, (1, 2, 3))))
    pools[0].make_free(2)
    assert (pools[0].free, pools[0].kept_blocks) == (2, 2)
    pools[0].make_free(2)
    for pool in pools:
        pool.take(2)

    assert [(pool.free, pool.cached_prefix(Sequence(1, 49, 1, (1, 2, 3)))) for pool in pools] == [(0, 2), (0, 2)]


def test_discarded_hashes_are_never_found_again() -> None:
    """What a failed sequence left is free and missed; what another holds stays."""
    pool = BlockPool(8, 16, 16)
    failed, other = computed(pool, Sequence(0, 33, 1, (1, 2))), computed(pool, Sequence(1, 17, 1, (1,)))
    pool.release(failed)
    pool.discard((1, 2))

    assert pool.cached_prefix(Sequence(2, 33, 1, (1, 2))) == 1
    pool.release(other)
    assert pool.free + pool.kept_blocks == 8


class Addressed(BlockPool):
    """A pool that hands out addresses: it writes down which hashes left."""

    def _forget(self, keys: list[int]) -> None:
        self.left = [*getattr(self, "left", []), *keys]


def test_a_pool_with_addresses_hears_which_hashes_leave() -> None:
    """Evicted from the end, then discarded: each once, none that is held."""
    pool = Addressed(8, 16, 16)
    held = computed(pool, Sequence(0, 17, 1, (9,)))
    pool.release(computed(pool, Sequence(1, 65, 1, (1, 2, 3, 4))))
    pool.take(4)
    pool.discard((1, 9, 7))

    assert pool.left == [4, 3, 1]
    assert held.shared == 1


def test_only_chunks_without_a_check_are_eased_by_eviction() -> None:
    """One that waits gets in once its prefix is evicted where it then takes a chunk's blocks from the start alone."""
    cached, plain = BlockPool(8, 16, 16), BlockPool(8, 16)

    assert ByChunk(cached, whole_must_fit=False).eased_by_eviction
    assert not ByChunk(cached, whole_must_fit=True).eased_by_eviction
    assert not ByChunk(plain, whole_must_fit=False).eased_by_eviction
