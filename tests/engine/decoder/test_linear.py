"""The plain product, reordered or not."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from servewise.engine.decoder.linear import DenseLinear, rms_norm


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("tokens", [0, 1, 7, 40])
def test_product_is_the_exact_one_rounded_once(dtype: torch.dtype, tokens: int) -> None:
    """Within a sum's bound (Higham 2002, eq. 3.5) and one rounding of the exact product; the weight comes back."""
    torch.manual_seed(0)
    weight, bias = torch.randn(96, 48).to(dtype), torch.randn(96).to(dtype)
    x = torch.randn(tokens, 48).to(dtype)
    product = DenseLinear(weight, bias)
    want = x.double() @ weight.double().T + bias.double()
    magnitude = x.double().abs() @ weight.double().abs().T + bias.double().abs()
    summing = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps * 49 * magnitude
    got = product(x)

    assert got.dtype == dtype
    assert bool(((got.double() - want).abs() <= summing + torch.finfo(dtype).eps * want.abs()).all())
    assert product.weight_OI.equal(weight)


def test_norm_of_large_values_in_16_bits() -> None:
    """A hidden state whose square overflows 16 bits has the norm of its float64 copy."""
    x, weight = torch.full((2, 8), 3e4, dtype=torch.float16), torch.arange(8.0)
    got = rms_norm(x, weight, 1e-5, torch.float16)

    torch.testing.assert_close(got.double(), weight.double().expand(2, 8), rtol=1e-3, atol=0)
