"""Addresses follow the pool's decisions: shared prefixes, joined copies, evictions."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from servewise.batching.sequence import Sequence
from servewise.engine.running.addresses import AddressedPool


def computed(pool: AddressedPool, sequence: Sequence) -> None:
    """The whole prompt of an admitted sequence is computed."""
    sequence.computed_tokens = sequence.prompt_tokens
    pool.publish(sequence)


def test_a_cached_prefix_has_the_same_addresses() -> None:
    """The second sequence's table begins with the first one's two shared blocks, its own blocks are others."""
    pool = AddressedPool(10, 4, 4)
    first, second = Sequence(0, 10, 1, (7, 8)), Sequence(1, 12, 1, (7, 8, 9))
    assert pool.admit(first, 11)
    computed(pool, first)
    assert pool.admit(second, 13)

    assert pool.table(first)[:2] == pool.table(second)[:2]
    assert not set(pool.table(first)[2:]) & set(pool.table(second)[2:])
    assert pool.counts() == (10 - 3 - 2, 5, 0)


def test_two_that_compute_one_prefix_end_in_one_copy() -> None:
    """Both were admitted before either was computed: the second moves to the first's blocks and frees its own."""
    pool = AddressedPool(10, 4, 4)
    first, second = Sequence(0, 9, 1, (7, 8)), Sequence(1, 9, 1, (7, 8))
    for each in (first, second):
        assert pool.admit(each, 10)
    own = pool.table(second)
    computed(pool, first)
    computed(pool, second)

    assert pool.table(second) == (*pool.table(first)[:2], own[2])
    assert pool.counts() == (6, 4, 0)
    assert pool.free == 6


def test_an_evicted_prefix_frees_its_addresses() -> None:
    """A pool of 4: the kept blocks of the first are evicted, last block first, as the second needs them."""
    pool = AddressedPool(4, 4, 4)
    first = Sequence(0, 13, 1, (1, 2, 3))
    assert pool.admit(first, 13)
    computed(pool, first)
    table = pool.table(first)
    pool.release(first)
    assert pool.counts() == (1, 0, 3)
    second = Sequence(1, 12, 1)
    assert pool.admit(second, 12)

    assert set(pool.table(second)) == {table[3], table[2], table[1]}
    assert pool.counts() == (0, 3, 1)


def test_cover_evicts_ahead_and_commit_takes() -> None:
    """A growing table gets its block before the step, the pool counts it when the step is committed."""
    pool = AddressedPool(3, 4, 4)
    kept = Sequence(0, 8, 1, (1, 2))
    assert pool.admit(kept, 8)
    computed(pool, kept)
    pool.release(kept)
    grows = Sequence(1, 4, 5)
    assert pool.admit(grows, 4)
    pool.cover([(grows, 5)])
    pool.cover([(grows, 5)])

    assert len(pool.table(grows)) == 2
    assert (pool.free, pool.kept_blocks) == (1, 1)
    pool.take(1)
    assert pool.counts() == (0, 2, 1)


def test_discarded_blocks_are_free_at_once_unless_someone_holds_them() -> None:
    """Of two kept hashes one is held by another sequence: only the other is freed."""
    pool = AddressedPool(8, 4, 4)
    first, second = Sequence(0, 9, 1, (1, 2)), Sequence(1, 6, 1, (1,))
    assert pool.admit(first, 9)
    computed(pool, first)
    table = pool.table(first)
    assert pool.admit(second, 6)
    pool.release(first)
    pool.discard((1, 2))

    assert pool.free_among(table) == tuple(sorted(table[1:]))
    assert pool.counts() == (6, 2, 0)
    assert pool.free + pool.kept_blocks == 6
