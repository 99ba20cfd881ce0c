"""GPTQ: the paper's update by its definition, never worse than plain rounding, exact on the grid."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.engine.quantised.gptq import Gptq, compensated, inverse_factor, output_error
from servewise.engine.quantised.grid import Grid, round_to_grid
from servewise.engine.quantised.matrix import round_to_nearest
from servewise.errors import InputError


def correlated(inputs: int, seed: int, tokens: int = 512, rank: int = 8) -> torch.Tensor:
    """(T, I) inputs that a few directions explain, with channels of unequal size."""
    generator = torch.Generator().manual_seed(seed)
    few = torch.randn(tokens, rank, generator=generator, dtype=torch.float64)
    mixed = few @ torch.randn(rank, inputs, generator=generator, dtype=torch.float64)
    noise = torch.randn(tokens, inputs, generator=generator, dtype=torch.float64)
    return (mixed + 0.3 * noise) * torch.rand(inputs, generator=generator, dtype=torch.float64).add(0.1)


def moment(inputs_TI: torch.Tensor) -> torch.Tensor:
    """E[x x^T]."""
    return inputs_TI.T @ inputs_TI / len(inputs_TI)


def weight_of(outputs: int, inputs: int, seed: int = 0) -> torch.Tensor:
    """Normal weights in float64."""
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(
    bits=st.sampled_from((8, 6, 4, 3, 2)),
    group=st.sampled_from((None, 32, 64)),
    symmetric=st.booleans(),
    act_order=st.booleans(),
    inputs=st.integers(40, 200),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_never_worse_than_plain_rounding(
    bits: int, group: int | None, symmetric: bool, act_order: bool, inputs: int, seed: int
) -> None:
    """The layer's output error on the calibration inputs is at most that of rounding to nearest, for every output."""
    x, weight = correlated(inputs, seed), weight_of(12, inputs, seed)
    grid = Grid(bits=bits, group=group, symmetric=symmetric)
    ours = compensated(weight, moment(x), grid, Gptq(act_order=act_order)).dense() - weight
    plain = round_to_nearest(weight, grid).dense() - weight
    assert ((x @ ours.T).square().sum(0) <= (x @ plain.T).square().sum(0) * (1 + 1e-9)).all()


@pytest.mark.parametrize("bits", [4, 3, 2])
@pytest.mark.parametrize("act_order", [False, True])
def test_much_better_where_inputs_are_correlated(bits: int, act_order: bool) -> None:
    """On inputs that eight directions explain, most of the output error of plain rounding goes."""
    x, weight = correlated(160, seed=3), weight_of(32, 160)
    grid = Grid(bits=bits, group=32, symmetric=False)
    made = compensated(weight, moment(x), grid, Gptq(act_order=act_order))
    ours = output_error(made.dense() - weight, moment(x)).sum()
    plain = output_error(round_to_nearest(weight, grid).dense() - weight, moment(x)).sum()
    assert ours < 0.5 * plain


def test_equals_the_papers_update_done_column_by_column() -> None:
    """Codes equal those of OBQ's closed form: round, then spread the error by the inverse of the Hessian left over."""
    inputs = 150  # more than a block, so that the lazy update is in it
    x, weight = correlated(inputs, seed=5), weight_of(6, inputs)
    grid = Grid(bits=3, symmetric=False)
    hessian = moment(x) + 0.01 * moment(x).diagonal().mean() * torch.eye(inputs, dtype=torch.float64)
    left = weight.clone()
    steps_from = weight.clone()
    for q in range(inputs):
        rounded = _on_grid_of(steps_from, left[:, q], grid)
        inverse = torch.linalg.inv(hessian[q:, q:])
        error = (left[:, q] - rounded) / inverse[0, 0]
        left[:, q:] -= torch.outer(error, inverse[0])
        left[:, q] = rounded
    from servewise.engine.quantised.gptq import _greedy

    ours = _greedy(weight, moment(x), grid, Gptq()).dense()
    torch.testing.assert_close(ours, left, rtol=0, atol=1e-9)


def _on_grid_of(weight: torch.Tensor, column: torch.Tensor, grid: Grid) -> torch.Tensor:
    """``column`` on the grid that each row of ``weight`` spans: the row's ends beside it keep the range."""
    low, high = weight.aminmax(dim=1)
    clamped = torch.minimum(torch.maximum(column, low), high)
    return round_to_grid(torch.stack((low, clamped, high), 1), grid)[:, 1]


@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize("group", [None, 32])
def test_weights_on_the_grid_stay(group: int | None, act_order: bool) -> None:
    """A matrix that plain rounding reproduces has no error to compensate and comes back bit by bit."""
    grid = Grid(bits=4, group=group, symmetric=False)
    weight = round_to_nearest(weight_of(16, 96).half().double(), grid).dense()
    once = round_to_nearest(weight, grid).dense()
    made = compensated(once, moment(correlated(96, 1)), grid, Gptq(act_order=act_order)).dense()
    torch.testing.assert_close(made, once, rtol=0, atol=1e-12)


@given(st.integers(2, 60), st.integers(0, 100), st.sampled_from((0.001, 0.01, 0.1)))
@settings(max_examples=25, deadline=None)
def test_the_factor_is_that_of_the_damped_inverse(inputs: int, seed: int, damping: float) -> None:
    """U is upper triangular and U^T U = (H + damping mean diag H)^-1."""
    hessian = moment(correlated(inputs, seed))
    upper = inverse_factor(hessian, damping)
    damped = hessian + damping * hessian.diagonal().mean() * torch.eye(inputs, dtype=torch.float64)
    assert torch.equal(upper, upper.triu())
    torch.testing.assert_close(upper.T @ upper @ damped, torch.eye(inputs, dtype=torch.float64), rtol=0, atol=1e-8)


def test_inputs_that_never_fire_do_no_harm() -> None:
    """A channel that is zero throughout the calibration keeps a weight near its own, on the grid."""
    x = correlated(64, 2)
    x[:, 10] = 0
    weight = weight_of(8, 64)
    made = compensated(weight, moment(x), Grid(bits=8), Gptq()).dense()
    assert (made[:, 10] - weight[:, 10]).abs().max() <= weight.abs().amax() / 127


@pytest.mark.parametrize("damping", [0.0, 1.0, float("nan"), -0.1])
def test_a_damping_outside_0_to_1_is_refused(damping: float) -> None:
    """Zero, one, NaN and negative damping are input errors."""
    with pytest.raises(InputError, match="damping"):
        Gptq(damping=damping)


@pytest.mark.parametrize("wrong", ["shape", "nan"])
def test_moments_that_do_not_fit_are_refused(wrong: str) -> None:
    """Second moments of another width or with NaN are one clear line."""
    second = moment(correlated(32, 0))
    second = second[:8, :8] if wrong == "shape" else second * float("nan")
    with pytest.raises(InputError, match="second moments"):
        compensated(weight_of(4, 32), second, Grid(bits=4), Gptq())
