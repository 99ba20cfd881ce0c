"""The paged cache: what is written is read, wherever its blocks lie."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.engine.cache.paged import PagedCache
from servewise.engine.config import DecoderConfig, RopeConfig
from servewise.errors import InputError

CONFIG = DecoderConfig(
    name="small",
    family="llama",
    hidden=8,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=4,
    intermediate=8,
    vocabulary=16,
    max_context_tokens=64,
    norm_epsilon=1e-5,
    rope=RopeConfig(theta=1e4, dimensions=4),
    tied=False,
)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.lists(st.integers(1, 17), min_size=1, max_size=4))
def test_a_sequence_reads_what_it_wrote(seed: int, block_tokens: int, lengths: list[int]) -> None:
    """Sequences that write in any order of chunks into any blocks each read their own tokens, layer by layer."""
    rng = random.Random(seed)
    cache = PagedCache(CONFIG, 70, block_tokens, dtype=torch.float64)
    free = rng.sample(range(70), 70)
    tables = [tuple(free.pop() for _ in range(-(-length // block_tokens))) for length in lengths]
    kept = [torch.randn(2, 2, length, 2, 4, dtype=torch.float64) for length in lengths]  # layer, keys or values
    places = [(s, i) for s, length in enumerate(lengths) for i in range(length)]
    rng.shuffle(places)
    while places:
        chunk = [places.pop() for _ in range(min(len(places), rng.randint(1, 9)))]
        slots = torch.tensor([tables[s][i // block_tokens] * block_tokens + i % block_tokens for s, i in chunk])
        for layer in range(2):
            keys, values = (torch.stack([kept[s][layer, side, i] for s, i in chunk]) for side in range(2))
            cache.write(layer, slots, keys, values)
    for s, length in enumerate(lengths):
        for layer in range(2):
            keys, values = cache.read(layer, (*tables[s], 69), length)

            torch.testing.assert_close(keys, kept[s][layer, 0], rtol=0, atol=0)
            torch.testing.assert_close(values, kept[s][layer, 1], rtol=0, atol=0)


def test_bytes_are_the_formula() -> None:
    """2 x layers x blocks x block tokens x KV heads x head size x bytes a value, and no byte more."""
    cache = PagedCache(CONFIG, 10, 16, dtype=torch.bfloat16)

    assert cache.bytes == 2 * 2 * 10 * 16 * 2 * 4 * 2
    assert (cache.blocks, cache.block_tokens) == (10, 16)


def test_copy_and_clear() -> None:
    """A copied block holds the same tokens; a cleared one only zeros, and other blocks stay."""
    cache = PagedCache(CONFIG, 4, 2)
    keys = torch.randn(2, 2, 4)
    cache.write(1, torch.tensor([2, 3]), keys, -keys)
    cache.copy(1, 3)
    cache.clear((1,))

    torch.testing.assert_close(cache.read(1, (3,), 2)[1], -keys)
    assert not cache.read(1, (1,), 2)[0].any()


@pytest.mark.parametrize(("blocks", "block_tokens"), [(0, 16), (4, 0), (2**50, 16)])
def test_impossible_sizes_are_refused(blocks: int, block_tokens: int) -> None:
    """No blocks, no tokens, or more than the memory holds: one line."""
    with pytest.raises(InputError, match=r"holds nothing|no memory"):
        PagedCache(CONFIG, blocks, block_tokens)
