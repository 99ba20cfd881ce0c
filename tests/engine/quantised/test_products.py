"""Products by a kernel equal the emulations, and keep as few bytes as they claim."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from servewise.engine.quantised.gptq import output_error
from servewise.engine.quantised.grid import Grid
from servewise.engine.quantised.matrix import round_to_nearest
from servewise.engine.quantised.products import Int4Linear, Int8Int8Linear, Int8Linear, RoundedInputs, packed

BF16 = torch.bfloat16


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal values."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("tokens", [1, 3, 32, 33, 160, 161])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    "grid",
    [
        Grid(bits=8, scales="bf16"),
        Grid(bits=4, group=32, scales="bf16"),
        Grid(bits=4, group=64, symmetric=False, scales="bf16"),
        Grid(bits=4, group=128, symmetric=False, scales="bf16"),
    ],
    ids=str,
)
def test_a_packed_product_equals_its_emulation(grid: Grid, tokens: int, biased: bool) -> None:
    """In bf16, kernel or dense copy, the outputs are those of exact arithmetic on the same codes to bf16's rounding."""
    matrix = round_to_nearest(drawn(192, 256), grid)
    x, bias = drawn(tokens, 256, seed=1).to(BF16), drawn(192, seed=2).to(BF16) if biased else None
    made = packed(matrix, BF16, bias, activations=False)
    assert made is not None
    exact = x.double() @ matrix.dense().double().T + (0 if bias is None else bias.double())
    terms = (x.double().abs() @ matrix.dense().double().abs().T).max() / 256**0.5  # independent errors of 256 terms
    half_ulp = 2**-9  # the product, its scaling, its bias and a dense copy's weights are rounded once each
    assert (made(x).double() - exact).abs().max() <= 3 * half_ulp * exact.abs().max() + 4 * half_ulp * terms


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
def test_integer_products_equal_their_emulation(dtype: torch.dtype) -> None:
    """8-bit weights with 8-bit activations, summed in integers, give what float64 gives on the rounded values."""
    matrix = round_to_nearest(drawn(96, 256), Grid(bits=8))
    x = drawn(20, 256, seed=1).to(dtype)
    made = packed(matrix, dtype, None, activations=True)
    assert isinstance(made, Int8Int8Linear)
    rounded = RoundedInputs(lambda y: y.double() @ matrix.dense().double().T)(x.float())
    tolerance = 1e-5 if dtype == torch.float32 else 2**-8
    torch.testing.assert_close(made(x).double(), rounded, rtol=tolerance, atol=tolerance * float(rounded.std()))


def test_packed_weights_take_the_bytes_they_claim() -> None:
    """8 bits: a byte a weight and 16 bits a channel; 4 bits: half a byte, 32 bits a group."""
    eight = Int8Linear(round_to_nearest(drawn(192, 256), Grid(bits=8, scales="bf16")), None)
    four = Int4Linear(round_to_nearest(drawn(192, 256), Grid(bits=4, group=32, symmetric=False, scales="bf16")), None)
    both = Int8Int8Linear(round_to_nearest(drawn(192, 256), Grid(bits=8)), None)
    assert eight.stored_bytes == 192 * 256 + 192 * 2
    assert four.stored_bytes == 192 * 256 // 2 + 192 * 8 * 4
    assert both.stored_bytes == 192 * 256 + 192 * 4


@pytest.mark.parametrize(
    ("grid", "dtype"),
    [
        (Grid(bits=6, scales="bf16"), BF16),
        (Grid(bits=3, group=32, scales="bf16"), BF16),
        (Grid(bits=4, scales="bf16"), BF16),
        (Grid(bits=8), BF16),
        (Grid(bits=8, scales="bf16"), torch.float32),
        (Grid(bits=4, group=32, scales="bf16"), torch.float64),
    ],
)
def test_what_has_no_kernel_is_not_packed(grid: Grid, dtype: torch.dtype) -> None:
    """Other widths, groups, scales and dtypes are left to the emulation."""
    assert packed(round_to_nearest(drawn(128, 128), grid), dtype, None, activations=False) is None


def test_rounding_activations_costs_little_and_something() -> None:
    """8 bits a token change an output by less than 1% in the mean square, and do change it."""
    weight, x = drawn(64, 256), drawn(50, 256, seed=1)
    rounded = RoundedInputs(lambda y: y @ weight.T)(x)
    exact = x @ weight.T
    share = float((rounded - exact).square().mean() / exact.square().mean())
    assert 0 < share < 1e-4


def test_output_error_is_the_mean_square_over_the_inputs() -> None:
    """diag(D E[x x^T] D^T) equals the mean of (D x)^2."""
    x, difference = drawn(70, 30), drawn(5, 30, seed=1)
    direct = (x @ difference.T).square().mean(0)
    torch.testing.assert_close(output_error(difference, x.T @ x / 70), direct, rtol=1e-4, atol=1e-5)
