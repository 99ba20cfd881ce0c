"""Whose coefficients a deployment takes, and what it is told about them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from statistics import quantiles

import pytest
from tests.steptime.known import FP8, LLAMA_31_8B, accelerator, deployed
from tests.steptime.test_work import mixture

from servewise.caveats import Caveat
from servewise.hardware.catalogue import load_accelerator
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.draws import calibrated_draws, drawn
from servewise.steptime.lookup import BORROWED, OUTSIDE, coefficients_for
from servewise.steptime.matmul_rates import matmul_shares
from servewise.steptime.ranges import range_caveats
from servewise.steptime.shape import decode_shape, prefill_shape
from servewise.steptime.shipped import Spread, shipped

H100 = load_accelerator("h100-sxm")


def codes(*caveats: Caveat) -> set[str]:
    """The codes of some caveats."""
    return {each.code for each in caveats}


def test_a_measured_pair_needs_no_caveat() -> None:
    """vLLM on an H100 serving a dense Llama is what was fitted."""
    assert coefficients_for(deployed(LLAMA_31_8B, H100)).caveats == ()


def test_an_unmeasured_accelerator_takes_its_kin_and_says_so() -> None:
    """A device whose kin is the H200 takes the H200's efficiencies with its own bandwidth."""
    strange = accelerator("strange", bandwidth=8e12, kin="h200", bf16=2.25e15)
    found = coefficients_for(deployed(LLAMA_31_8B, strange))

    assert codes(*found.caveats) == {BORROWED}
    assert "h200" in found.caveats[0].message
    assert (
        found.coefficients.gemm == coefficients_for(deployed(LLAMA_31_8B, load_accelerator("h200"))).coefficients.gemm
    )


def test_borrowed_flop_efficiency_follows_the_rates_both_chips_reach() -> None:
    """An MI300X reaches 668 of 1,300 TFLOP/s, its kin H200 794 of 989: its products run at 0.64 of the kin's share."""
    own, kin = (
        coefficients_for(deployed(LLAMA_31_8B, load_accelerator(name))).coefficients for name in ("mi300x", "h200")
    )

    assert own.gemm.flop_efficiency / kin.gemm.flop_efficiency == pytest.approx((668.4 / 1300) / (794.5 / 989))
    assert own.gemm.weight_efficiency == kin.gemm.weight_efficiency


def test_fitted_efficiencies_agree_with_published_matmul_rates() -> None:
    """The bf16 products fitted from engines' kernels reach what a search over shapes reached, within a tenth."""
    shares = {"a100-80gb": 271.2 / 312, "h100-sxm": 794.5 / 989, "h200": 794.5 / 989}
    for name, share in shares.items():
        fitted = [e.gemm.flop_efficiency for e in shipped().entries if (e.accelerator, e.form) == (name, "bf16")]
        assert sum(fitted) / len(fitted) == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize(
    ("name", "products", "tokens", "seconds", "tied"),
    [
        # gate and up of one layer: Qwen3 32B (5,120 to 2 x 25,600), Llama 3.1 8B (4,096 to 2 x 14,336), as timed in
        # benchmarks/data/card_kernels/products.csv
        ("rtx-pro-6000-server", 5120 * 2 * 25_600, 2048, 2548.17e-6, "rtx-pro-6000"),
        ("rtx-4090", 4096 * 2 * 14_336, 2048, 2896.81e-6, None),
    ],
)
def test_a_card_whose_own_products_were_timed_lends_its_formats_their_rate(
    name: str, products: int, tokens: int, seconds: float, tied: str | None
) -> None:
    """The share of its peak by which a card's borrowed formats are scaled is what its own bf16 products were timed at,
    within a tenth; so is that of a card with the same chip."""
    timed = 2.0 * products * tokens / seconds / load_accelerator(name).peaks["bf16"].value

    assert matmul_shares()[name] == pytest.approx(timed, rel=0.1)
    assert tied is None or matmul_shares()[tied] == pytest.approx(matmul_shares()[name], rel=1e-3)


def test_formats_that_were_not_timed_follow_the_card_s_own_rate() -> None:
    """An L40S reaches 0.58 of its bf16 peak, an RTX PRO 6000 timed in bf16 0.86: its fp8 products, which the L40S
    lends, run at 0.86 / 0.58 of the L40S's share."""
    own, kin = (
        coefficients_for(
            deployed(LLAMA_31_8B, load_accelerator(name), weights=FP8, activations=FP8, engine="trtllm")
        ).coefficients.gemm
        for name in ("rtx-pro-6000-server", "l40s")
    )

    assert own.flop_efficiency / kin.flop_efficiency == pytest.approx((403.2 / 467.8) / (210 / 362), rel=1e-6)


def test_every_card_timed_by_itself_has_a_rate() -> None:
    """Of all cards whose bf16 products were fitted on the card itself the rate is known, and it is what was fitted."""
    for each in shipped().cards.entries:
        if each.form == "bf16":
            for name in (each.accelerator, *each.stands_for):
                assert matmul_shares()[name] == pytest.approx(each.gemm.flop_efficiency, rel=0.1), name


def test_three_numbers_are_enough() -> None:
    """Without kin the median of the measured accelerators stands in, told, with a wider spread."""
    unknown = accelerator("unknown", bandwidth=1e12, bf16=1e14)
    found, known = coefficients_for(deployed(LLAMA_31_8B, unknown)), coefficients_for(deployed(LLAMA_31_8B, H100))

    assert codes(*found.caveats) == {BORROWED}
    assert "median" in found.caveats[0].message
    assert found.spread.decode > 2 * known.spread.decode


@pytest.mark.parametrize("engine", ["llamacpp", "ideal", "something"])
def test_an_unmeasured_engine_takes_the_nearest(engine: str) -> None:
    """llama.cpp has no measurements: vLLM's coefficients, and a caveat that names both."""
    found = coefficients_for(deployed(LLAMA_31_8B, H100, engine=engine))

    assert codes(*found.caveats) == {BORROWED}
    assert engine in found.caveats[0].message
    assert "vllm" in found.caveats[0].message


def test_an_engine_with_a_version_is_that_engine() -> None:
    """``vllm-0.10`` takes vLLM's coefficients."""
    assert coefficients_for(deployed(LLAMA_31_8B, H100, engine="vllm-0.10")).caveats == ()


def test_fp8_without_fp8_units_runs_the_bf16_kernels() -> None:
    """An A100 has no fp8 units: fp8 weights are read in 8 bits and multiplied in bf16."""
    a100 = load_accelerator("a100-80gb")
    eight = coefficients_for(deployed(LLAMA_31_8B, a100, weights=FP8, activations=FP8))

    assert eight.coefficients.gemm == coefficients_for(deployed(LLAMA_31_8B, a100)).coefficients.gemm


def test_experts_are_outside_the_fitted_range() -> None:
    """No mixture of experts was measured, so its steps carry a caveat."""
    assert OUTSIDE in codes(*coefficients_for(deployed(mixture(8, 2), H100)).caveats)


def test_overridden_numbers_are_told() -> None:
    """Efficiencies fitted with the catalogue's bandwidth are doubtful on another."""
    slower = H100.with_overrides(bandwidth=2e12)

    assert codes(*coefficients_for(deployed(LLAMA_31_8B, slower)).caveats) == {BORROWED}


def test_messages_come_from_a_like_link() -> None:
    """A PCIe card whose kin has NVLink sends as slowly as the measured PCIe card, not as its kin."""
    card = load_accelerator("h100-pcie")
    curves = coefficients_for(deployed(LLAMA_31_8B, card, tensor=2)).coefficients.all_reduce
    nvlink = coefficients_for(deployed(LLAMA_31_8B, H100, tensor=2)).coefficients.all_reduce

    assert card.kin == "h100-sxm"
    assert curves[2].seconds(1e7) > 3 * nvlink[2].seconds(1e7)


def test_range_caveats() -> None:
    """A batch or a context beyond the fit is told, one inside is not."""
    estimator = calibrated_roofline(deployed(LLAMA_31_8B, H100))

    assert range_caveats(estimator, decode_shape(64, 4096)) == ()
    assert range_caveats(estimator, prefill_shape(1, 4096)) == ()
    assert codes(*range_caveats(estimator, decode_shape(4000, 4096))) == {OUTSIDE}
    assert codes(*range_caveats(estimator, decode_shape(1, 1_000_000))) == {OUTSIDE}


def test_shipped_coefficients_are_physical() -> None:
    """Efficiencies lie in (0, 1], times are positive, message times never fall with size."""
    table = shipped()
    for entry in table.entries:
        kernels = (entry.attention.decode, entry.attention.multi_head)
        shares = [entry.gemm.weight_efficiency, entry.gemm.flop_efficiency, entry.attention.flop_efficiency]
        assert all(0 < each <= 1 for each in shares + [kernel.kv_efficiency for kernel in kernels])
        assert all(kernel.launch_s > 0 for kernel in kernels)
        assert entry.gemm.sharpness >= 1
    for curves in table.all_reduce.values():
        for curve in curves.values():
            times = [knot.seconds for knot in curve.knots]
            assert times == sorted(times)
    assert "fit_step_times" in table.fit["command"]


def test_draws_are_plausible_and_repeat() -> None:
    """Draws of one seed are equal, their spread is that of the held-out error, their middle the fitted value."""
    where = deployed(LLAMA_31_8B, H100)
    shape = decode_shape(16, 2000)
    middle = calibrated_roofline(where).seconds(shape)
    drawn = [each.seconds(shape) for each in calibrated_draws(where, seed=7, count=400)]
    tenths = quantiles(drawn, n=20)
    spread = coefficients_for(where).spread.decode

    assert drawn == [each.seconds(shape) for each in calibrated_draws(where, seed=7, count=400)]
    assert tenths[9] == pytest.approx(middle, rel=0.02)
    assert 0.7 * spread < (tenths[-1] - tenths[0]) / (2 * 1.645 * middle) < 1.6 * spread


def test_no_draw_is_more_efficient_than_physics() -> None:
    """However wide the spread, every drawn efficiency is at most 1."""
    found = replace(coefficients_for(deployed(LLAMA_31_8B, H100)), spread=Spread(decode=1.0, prefill=1.0))
    draws = [drawn(found, Random(seed)) for seed in range(50)]
    shares = [
        share
        for each in draws
        for share in (
            each.gemm.weight_efficiency,
            each.gemm.flop_efficiency,
            each.attention.decode.kv_efficiency,
            each.attention.multi_head.kv_efficiency,
            each.attention.flop_efficiency,
        )
    ]

    assert max(shares) == 1.0
    assert min(shares) > 0.0
