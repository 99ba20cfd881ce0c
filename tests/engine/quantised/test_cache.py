"""The quantised KV cache: what is read is what the grid keeps, however it was written, in the bytes it claims."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from servewise.engine.config import DecoderConfig, RopeConfig
from servewise.engine.quantised.cache import QuantisedCache
from servewise.engine.quantised.grid import BITS, round_to_grid
from servewise.engine.quantised.scheme import KvScheme
from servewise.errors import InputError

CONFIG = DecoderConfig(
    name="made",
    family="llama",
    hidden=32,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=8,
    intermediate=64,
    vocabulary=100,
    max_context_tokens=512,
    norm_epsilon=1e-5,
    rope=RopeConfig(theta=10_000.0, dimensions=8),
    tied=True,
)
BLOCK = 4


def drawn(tokens: int, seed: int = 0) -> Tensor:
    """(T, K, D) with a channel that is large in every token, as keys have."""
    values = torch.randn(tokens, 2, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    values[:, :, 3] += 20
    return values


def cache_of(scheme: KvScheme, blocks: int = 16, recent: int = 64) -> QuantisedCache:
    """A float64 cache."""
    return QuantisedCache(CONFIG, scheme, blocks, BLOCK, dtype=torch.float64, recent_blocks=recent)


def slots(table: tuple[int, ...], start: int, end: int) -> Tensor:
    """Where tokens ``start`` to ``end`` of a sequence go."""
    return torch.tensor([table[i // BLOCK] * BLOCK + i % BLOCK for i in range(start, end)])


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("group", [None, 4])
def test_values_and_keys_by_token_are_those_of_the_grid(bits: int, symmetric: bool, group: int | None) -> None:
    """What is read equals rounding each token and head (or group of channels) to the grid."""
    scheme = KvScheme(bits=bits, keys="token", symmetric=symmetric, group=group)
    cache, table = cache_of(scheme), (5, 2, 9)
    keys, values = drawn(11), drawn(11, seed=1)
    cache.write(1, slots(table, 0, 11), keys, values)
    read_keys, read_values = cache.read(1, table, 11)
    torch.testing.assert_close(read_keys, round_to_grid(keys, scheme.along_channels), rtol=0, atol=1e-12)
    torch.testing.assert_close(read_values, round_to_grid(values, scheme.along_channels), rtol=0, atol=1e-12)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_keys_by_channel_are_rounded_over_their_block_but_the_last(bits: int, symmetric: bool) -> None:
    """Full blocks behind the last equal rounding each channel over the block's tokens; the last block is as written."""
    scheme = KvScheme(bits=bits, symmetric=symmetric)
    cache, table, keys = cache_of(scheme), (5, 2, 9), drawn(10)
    cache.write(0, slots(table, 0, 10), keys, keys)
    read, _ = cache.read(0, table, 10)
    by_channel = keys[:8].unflatten(0, (2, BLOCK)).movedim(1, -1)  # type: ignore[no-untyped-call]
    expected = round_to_grid(by_channel, scheme.along_tokens).movedim(-1, 1).flatten(0, 1)
    torch.testing.assert_close(read[:8], expected, rtol=0, atol=1e-12)
    assert torch.equal(read[8:], keys[8:])


def test_keys_by_channel_keep_a_large_channel_better() -> None:
    """Where one channel is large in every token, steps by channel err less than steps by token (KIVI's finding)."""
    keys, table = drawn(16), (0, 1, 2, 3)
    errors = {}
    for by in ("channel", "token"):
        cache = cache_of(KvScheme(bits=2, keys=by))
        cache.write(0, slots(table, 0, 16), keys, keys)
        errors[by] = float((cache.read(0, table, 16)[0][:12] - keys[:12]).square().mean())
    assert errors["channel"] < 0.5 * errors["token"]


@given(
    by=st.sampled_from(("channel", "token")),
    cuts=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    recent=st.sampled_from((1, 2, 64)),
)
@settings(max_examples=40, deadline=None)
def test_what_is_kept_does_not_depend_on_the_chunks(by: str, cuts: list[int], recent: int) -> None:
    """Rounded blocks and the last block are the same whether a sequence is written in one step or in many."""
    total, table = sum(cuts), tuple(range(20, 0, -1))
    keys, values = drawn(total), drawn(total, seed=1)
    whole, parts = (cache_of(KvScheme(bits=3, keys=by), blocks=32, recent=each) for each in (64, recent))
    whole.write(0, slots(table, 0, total), keys, values)
    start = 0
    for cut in cuts:
        parts.write(0, slots(table, start, start + cut), keys[start : start + cut], values[start : start + cut])
        start += cut
        parts.read(0, table, start)
    for a, b in zip(whole.read(0, table, total), parts.read(0, table, total), strict=True):
        assert torch.equal(a, b)


def test_sequences_do_not_touch_each_other() -> None:
    """Interleaved writes of several sequences read as if each were alone."""
    scheme = KvScheme(bits=4)
    together, tables = cache_of(scheme), {0: (3, 8), 1: (1, 0), 2: (12, 7)}
    for start in range(0, 8, 2):
        new = [slots(table, start, start + 2) for table in tables.values()]
        keys = [drawn(8, seed)[start : start + 2] for seed in tables]
        together.write(0, torch.cat(new), torch.cat(keys), torch.cat(keys))
        for table in tables.values():
            together.read(0, table, start + 2)
    for seed, table in tables.items():
        alone = cache_of(scheme)
        alone.write(0, slots(table, 0, 8), drawn(8, seed), drawn(8, seed))
        assert torch.equal(alone.read(0, table, 8)[0], together.read(0, table, 8)[0])


def test_tokens_taken_back_and_written_anew_are_the_new_ones() -> None:
    """After a rollback into the last block (rejected drafts) the block holds the old start and the new end."""
    cache, table, keys, new = cache_of(KvScheme(bits=8)), (2, 4), drawn(8), drawn(2, seed=5)
    cache.write(0, slots(table, 0, 7), keys[:7], keys[:7])
    cache.read(0, table, 7)
    cache.write(0, slots(table, 5, 7), new, new)
    assert torch.equal(cache.read(0, table, 7)[0][4:], torch.cat((keys[4:5], new)))


def test_a_rounded_block_that_goes_on_is_restored() -> None:
    """A rollback behind a block's end continues from its rounded tokens, within half a step of the written ones."""
    cache, table, keys = cache_of(KvScheme(bits=8)), (2, 4), drawn(8)
    cache.write(0, slots(table, 0, 8), keys, keys)
    cache.read(0, table, 8)  # rounds block 2
    cache.write(0, slots(table, 2, 3), keys[2:3], keys[2:3])
    read = cache.read(0, table, 3)[0]
    assert torch.equal(read[2], keys[2])
    step = (keys[:4].amax(0) - keys[:4].amin(0)) / 255
    assert ((read[:2] - keys[:2]).abs() <= 0.51 * step + 0.02).all()


def test_more_running_sequences_than_recent_blocks_are_rounded_not_lost() -> None:
    """With room for one recent block, two sequences' last blocks read as rounded, to within half a step."""
    cache, keys = cache_of(KvScheme(bits=8), recent=1), drawn(3)
    for block in (0, 1):
        cache.write(0, slots((block,), 0, 3), keys, keys)
    step = (keys.amax(0) - keys.amin(0)) / 255
    for block in (0, 1):
        assert ((cache.read(0, (block,), 3)[0] - keys).abs() <= 0.51 * step + 0.02).all()


@pytest.mark.parametrize("by", ["channel", "token"])
def test_a_copied_block_reads_like_its_source(by: str) -> None:
    """Rounded or recent, a copy reads as the source did, in every layer."""
    cache, keys = cache_of(KvScheme(bits=4, keys=by)), drawn(8)
    for layer in (0, 1):
        cache.write(layer, slots((3, 6), 0, 8), keys, keys)
        cache.read(layer, (3, 6), 8)
    for source, target in ((3, 10), (6, 11)):
        cache.copy(source, target)
    for layer in (0, 1):
        for a, b in zip(cache.read(layer, (3, 6), 8), cache.read(layer, (10, 11), 8), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("by", ["channel", "token"])
def test_cleared_blocks_hold_numbers_again(by: str) -> None:
    """NaN written into a block is gone once it is cleared, and the block works as new."""
    cache, broken, keys = cache_of(KvScheme(bits=4, keys=by)), drawn(8) * float("nan"), drawn(8)
    cache.write(0, slots((3, 6), 0, 8), broken, broken)
    cache.read(0, (3, 6), 8)
    cache.clear((3, 6))
    assert all(torch.isfinite(each).all() for each in cache.read(0, (3, 6), 8))
    cache.write(0, slots((3, 6), 0, 8), keys, keys)
    assert (cache.read(0, (3, 6), 8)[0] - keys).abs().max() < 2


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("by", ["channel", "token"])
def test_bytes_are_codes_and_steps(bits: int, by: str) -> None:
    """A cache takes its codes, 16-bit scales and offsets, counted by hand, and its recent blocks."""
    blocks, recent = 16, 2
    cache = QuantisedCache(
        CONFIG, KvScheme(bits=bits, keys=by), blocks, BLOCK, dtype=torch.float32, recent_blocks=recent
    )
    per_layer_codes = 2 * blocks * BLOCK * 2 * 8 * bits // 8  # keys and values, tokens, heads, channels
    value_steps = blocks * BLOCK * 2 * 2 * 2  # a scale and an offset of 2 bytes for each token and head
    key_steps = blocks * 2 * 8 * 2 * 2 if by == "channel" else value_steps
    recent_keys = recent * BLOCK * 2 * 8 * 4 if by == "channel" else 0
    assert cache.bytes == 2 * (per_layer_codes + value_steps + key_steps + recent_keys)


@pytest.mark.parametrize("wrong", [{"blocks": 0}, {"block_tokens": 0}, {"recent_blocks": 0}])
def test_an_empty_cache_is_refused(wrong: dict[str, int]) -> None:
    """Zero blocks, tokens or recent blocks are an input error."""
    sizes: dict[str, Any] = {"blocks": 4, "block_tokens": 4, "recent_blocks": 4} | wrong
    with pytest.raises(InputError, match="holds nothing"):
        QuantisedCache(CONFIG, KvScheme(bits=4), **sizes)


def test_keys_by_anything_else_are_refused() -> None:
    """Keys share steps by channel or by token."""
    with pytest.raises(InputError, match="keys"):
        KvScheme(bits=4, keys="head")
