"""The packed cache beside the plain one."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

import torch
from tests.engine.cache.test_paged import CONFIG

from servewise.engine.cache.paged import PagedCache
from servewise.engine.compiled.cache import PackedCache
from servewise.errors import InputError


@pytest.mark.parametrize("block_tokens", [1, 4, 16, 24, 32])
def test_reads_what_the_plain_cache_reads(block_tokens: int) -> None:
    """After the same writes, copies and clears, in any order, every sequence's keys and values are equal."""
    rng = random.Random(block_tokens)
    torch.manual_seed(0)
    packed = PackedCache(CONFIG, 9, block_tokens)
    plain = PagedCache(CONFIG, 9, block_tokens, dtype=torch.bfloat16)
    for _ in range(20):
        slots = torch.tensor(rng.sample(range(9 * block_tokens), rng.randint(1, 9)))
        keys, values = torch.randn(2, len(slots), CONFIG.kv_heads, CONFIG.head_dim).bfloat16()
        source, target = rng.sample(range(9), 2)
        for cache in (packed, plain):
            cache.write(1, slots, keys, values)
            cache.copy(source, target)
    packed.clear((3, 5))
    plain.clear((3, 5))
    table = tuple(rng.sample(range(9), 9))
    for tokens in (1, block_tokens, 4 * block_tokens + 1, 9 * block_tokens):
        for ours, theirs in zip(packed.read(1, table, tokens), plain.read(1, table, tokens), strict=True):
            assert ours.equal(theirs)


def test_no_waste_at_sixteen() -> None:
    """Blocks of 16 tokens take what their keys and values take."""
    assert PackedCache(CONFIG, 5, 16).bytes == PagedCache(CONFIG, 5, 16, dtype=torch.bfloat16).bytes


def test_no_room_is_one_clear_line() -> None:
    """A cache of nothing, and one beyond all memory, are refused."""
    with pytest.raises(InputError, match="holds nothing"):
        PackedCache(CONFIG, 0)
    with pytest.raises(InputError, match="no memory for"):
        PackedCache(CONFIG, 2**40)
