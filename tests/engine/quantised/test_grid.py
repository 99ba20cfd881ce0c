"""Grids: exact where values lie on them, within half a step elsewhere, bits and bytes counted as they are stored."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.engine.quantised.bit_packing import pack, packed_bytes, unpack
from servewise.engine.quantised.grid import BITS, Grid, in_groups, round_to_grid, steps_of
from servewise.engine.quantised.matrix import round_to_nearest
from servewise.errors import InputError
from servewise.study.quantise import round_to_nearest as study_round
from servewise.techniques.quantisation import matrix_bytes

GROUPS = (None, 32, 64, 128)


def random_weight(outputs: int = 24, inputs: int = 160, seed: int = 0) -> torch.Tensor:
    """Normal weights with a few large ones."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(outputs, inputs, generator=generator)
    weight[:, ::37] *= 5
    return weight


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("scales", ["fp16", "bf16"])
def test_weights_on_the_grid_come_back_exactly(bits: int, group: int | None, symmetric: bool, scales: str) -> None:
    """A matrix built from codes that reach both ends of the grid, with 16-bit steps, is reproduced bit by bit."""
    grid = Grid(bits=bits, group=group, symmetric=symmetric, scales=scales)
    generator = torch.Generator().manual_seed(bits)
    codes = torch.randint(grid.smallest, grid.largest + 1, (8, 256), generator=generator).float()
    grouped = in_groups(codes, group)
    grouped[..., 0], grouped[..., 1] = grid.smallest, grid.largest
    scale = 2.0 ** torch.randint(-8, 0, (*grouped.shape[:2], 1), generator=generator)
    offset = 0.0 if symmetric else scale * -3  # a power of two times a small whole number: exact in 16 bits
    weight = ((grouped - grid.centre) * scale + offset).flatten(1)
    assert torch.equal(round_to_nearest(weight, grid).dense(), weight)


def test_a_q4_1_block_is_reproduced_by_the_equal_grid() -> None:
    """Weights d q + m with float16 d and m and q from 0 to 15 (ggml's Q4_1) lose nothing at 4 bits, groups of 32."""
    generator = torch.Generator().manual_seed(1)
    codes = torch.randint(0, 16, (64, 18, 32), generator=generator).float()
    codes[..., 3], codes[..., 7] = 0, 15
    d = (torch.rand(64, 18, 1, generator=generator) * 0.02 + 0.002).half().float()
    m = (-torch.rand(64, 18, 1, generator=generator) * 0.2).half().float()
    weight = (codes * d + m).flatten(1)
    kept = round_to_nearest(weight, Grid(bits=4, group=32, symmetric=False)).dense()
    assert (kept - weight).abs().max() <= 1e-6 * weight.abs().max()


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_rounding_errs_by_half_a_step_at_most(bits: int, symmetric: bool) -> None:
    """|w - q(w)| <= scale / 2, and what keeping steps in 16 bits adds at the ends of the range."""
    grid = Grid(bits=bits, group=32, symmetric=symmetric)
    weight = random_weight(inputs=128)
    grouped = in_groups(weight, 32)
    steps = steps_of(grouped, grid)
    error = (in_groups(round_to_grid(weight, grid), 32) - grouped).abs()
    kept = 2**-11 * (grid.largest * steps.scale + steps.offset.abs())
    assert (error <= steps.scale / 2 + kept).all()


@pytest.mark.parametrize("bits", BITS)
def test_the_symmetric_grid_is_the_studys(bits: int) -> None:
    """With a scale a channel the grid is that of the study's room, but for scales kept in 16 bits."""
    weight = random_weight().double()
    ours = round_to_grid(weight, Grid(bits=bits, scales="fp32"))
    theirs = torch.from_numpy(study_round(weight.numpy(), bits, axis=1))
    step = weight.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
    differing = ((ours - theirs).abs() > 1e-6 * step * 2**bits).double().mean()
    assert differing < 0.002  # values half way between two codes may fall to either side


@pytest.mark.parametrize("symmetric", [True, False])
def test_fewer_bits_and_larger_groups_lose_more(symmetric: bool) -> None:
    """The squared error rises as bits fall, and as groups grow, on normal weights."""
    weight = random_weight(inputs=256)

    def error(bits: int, group: int | None) -> float:
        return float((round_to_grid(weight, Grid(bits=bits, group=group, symmetric=symmetric)) - weight).square().sum())

    assert all(error(more, 64) < error(fewer, 64) for more, fewer in pairwise(BITS))
    assert all(error(4, small) < error(4, large) for small, large in pairwise((32, 64, 128, None)))


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_bytes_are_those_of_the_closed_form(bits: int, group: int | None, symmetric: bool) -> None:
    """What is stored is as large as techniques.quantisation.matrix_bytes says, odd sizes and short groups included."""
    for outputs, inputs in ((24, 160), (7, 129), (3, 5)):
        grid = Grid(bits=bits, group=group, symmetric=symmetric)
        matrix = round_to_nearest(random_weight(outputs, inputs), grid)
        zero_bits = 0 if symmetric else 16
        size = inputs if group is None else min(group, inputs)
        assert matrix.stored_bytes == matrix_bytes(outputs, inputs, bits, size, zero_bits=zero_bits)


@given(st.sampled_from(range(1, 9)), st.integers(0, 41), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_packed_codes_come_back(bits: int, count: int, seed: int) -> None:
    """Unpacking undoes packing for every width and length, in ceil(count x bits / 8) bytes."""
    codes = torch.randint(0, 2**bits, (3, count), generator=torch.Generator().manual_seed(seed))
    packed = pack(codes, bits)
    assert packed.shape == (3, packed_bytes(count, bits))
    assert torch.equal(unpack(packed, bits, count).long(), codes)


@pytest.mark.parametrize("symmetric", [True, False])
def test_equal_and_zero_groups_are_kept(symmetric: bool) -> None:
    """A group of zeros stays zero; a group of one value is kept by an asymmetric grid."""
    grid = Grid(bits=4, group=32, symmetric=symmetric)
    assert not round_to_grid(torch.zeros(2, 64), grid).any()
    if not symmetric:
        assert torch.equal(round_to_grid(torch.full((2, 64), 0.25), grid), torch.full((2, 64), 0.25))


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(broken: float) -> None:
    """A NaN or an infinity in a weight is one clear line."""
    weight = random_weight()
    weight[3, 4] = broken
    with pytest.raises(InputError, match="not a finite number"):
        round_to_nearest(weight, Grid(bits=8))


@pytest.mark.parametrize(("name", "value"), [("bits", 1), ("bits", 9), ("group", 0), ("scales", "fp8")])
def test_what_is_no_grid_is_refused(name: str, value: object) -> None:
    """Bits outside 2 to 8, empty groups and unknown formats of scales are input errors."""
    with pytest.raises(InputError, match=name):
        Grid(**{"bits": 4, name: value})  # type: ignore[arg-type]
