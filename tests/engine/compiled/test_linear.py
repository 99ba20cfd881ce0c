"""The packed product."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from tests.engine.compiled.targets import TARGETS, built

from servewise.engine.compiled.arena import Arena
from servewise.engine.compiled.linear import PackedLinear


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("outputs", [96, 80, 50])
def test_product_is_the_exact_one_rounded_once(target: str, outputs: int) -> None:
    """Within a sum's bound (Higham 2002, eq. 3.5) and one rounding of the exact product; the weight comes back."""
    torch.manual_seed(0)
    weight, bias = torch.randn(outputs, 64).bfloat16(), torch.randn(outputs).bfloat16()
    product = PackedLinear(built(target), Arena(), weight, bias)
    for tokens in (0, 1, 7, 16, 17, 32, 40, 70):
        x = torch.randn(tokens, 64).bfloat16()
        want = x.double() @ weight.double().T + bias.double()
        magnitude = x.double().abs() @ weight.double().abs().T + bias.double().abs()
        summing = torch.finfo(torch.float32).eps * 65 * magnitude
        got = product(x)

        assert got.dtype == torch.bfloat16
        assert bool(((got.double() - want).abs() <= summing + torch.finfo(torch.bfloat16).eps * want.abs()).all())
    assert product.weight_OI.equal(weight)
    assert product.bias_O is not None
    assert product.bias_O.equal(bias.float())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_does_not_depend_on_its_neighbours(target: str, threads: int) -> None:
    """The same bits alone, among few and among many, wherever it stands."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    product = PackedLinear(built(target), Arena(), torch.randn(160, 96).bfloat16())
    x = torch.randn(75, 96).bfloat16()
    whole = product(x)

    assert whole.equal(torch.cat([product(row) for row in torch.split(x, 1)]))
    for count in (2, 5, 13, 16, 20, 33):
        assert product(x[-count:]).equal(whole[-count:])
    torch.set_num_threads(1)
