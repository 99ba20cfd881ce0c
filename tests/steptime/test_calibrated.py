"""The calibrated roofline: its parts by hand, its gain over the ideal one, and a real server."""

from __future__ import annotations

import csv
import math
import time
from pathlib import Path
from statistics import median

import pytest
from tests.steptime.known import FP8, LLAMA_31_8B, LLAMA_31_70B, deployed

from servewise.hardware.catalogue import load_accelerator
from servewise.steptime.api import calibrated_roofline, estimator_for
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.coefficients import (
    AllReduce,
    AttentionCoefficients,
    Coefficients,
    DecodeAttention,
    GemmCoefficients,
    Knot,
    SmallKernels,
    smooth_maximum,
)
from servewise.steptime.shape import StepShape, decode_shape, prefill_shape

DATA = Path(__file__).parent / "data"
KERNEL = DecodeAttention(launch_s=1e-5, ramp_s=5e-6, kv_efficiency=0.5)
PLAIN = Coefficients(
    title="by hand",
    gemm=GemmCoefficients(
        launch_s=2e-6, weight_efficiency=0.5, flop_efficiency=0.25, sharpness=200.0, activation_factor=0.0
    ),
    attention=AttentionCoefficients(
        decode=KERNEL, multi_head=KERNEL, prefill_launch_s=3e-5, flop_efficiency=0.25, activation_factor=0.0
    ),
    small=SmallKernels(layer_s=4e-6, hidden_bytes=0.0, width_bytes=0.0),
    all_reduce={2: AllReduce((Knot(8192, 7e-6), Knot(8_192_000, 7e-4)))},
)


def test_decode_step_by_hand() -> None:
    """Llama-2-7B, 4 sequences at 1,000: launches, weights and KV at half the bandwidth, small kernels."""
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096) + 32000 * 4096
    products = 2 * matrices / 0.5 / 2.039e12 + (4 * 32 + 1) * 2e-6
    attention = 32 * 5e-6 + 4 * 1000 * 524_288 / 0.5 / 2.039e12
    rows = 4 * 4096 * 2 / 2.039e12
    expected = products + attention + 32 * 4e-6 + rows

    assert CalibratedRoofline(deployed(), PLAIN).seconds(decode_shape(4, 1000)) == pytest.approx(expected, rel=1e-9)


def test_small_caches_hide_in_the_launch() -> None:
    """At one token of context, attention costs its launch, and that alone."""
    estimator = CalibratedRoofline(deployed(), PLAIN)
    at_one, at_two = (estimator.seconds(decode_shape(1, n)) for n in (1, 2))

    assert at_one == at_two


def test_prefill_step_by_hand() -> None:
    """A prompt of 4,096 tokens runs at a quarter of the peak, attention after the products."""
    layers = 32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)
    products = 4096 * 2 * layers / 0.25 / 312e12 + 2 * 32000 * 4096 / 0.5 / 2.039e12 + 129 * 2e-6
    kv = 4096 * 524_288 / 0.5 / 2.039e12
    attention = 32 * 3e-5 + 4096 * 4097 / 2 * 32 * 4 * 4096 / 0.25 / 312e12 + kv
    expected = products + attention + 32 * 4e-6 + 4096 * 4096 * 2 / 2.039e12

    assert CalibratedRoofline(deployed(), PLAIN).seconds(prefill_shape(1, 4096)) == pytest.approx(expected, rel=1e-3)


def test_two_all_reduces_a_layer() -> None:
    """On two ranks each of 32 layers sends two messages of 8,192 bytes a token."""
    step = CalibratedRoofline(deployed(tensor=2), PLAIN).step(decode_shape(1, 100))

    assert step.communication_s == pytest.approx(64 * 7e-6)


def test_all_reduce_between_and_beyond_knots() -> None:
    """Latency below the first knot, straight on logarithmic axes between, bandwidth above the last."""
    curve = AllReduce((Knot(1e3, 1e-5), Knot(1e5, 1e-3)))

    assert [curve.seconds(size) for size in (1, 1e4, 1e6)] == pytest.approx([1e-5, 1e-4, 1e-2])


def test_smooth_maximum_is_at_least_the_larger() -> None:
    """(3^2 + 4^2)^(1/2) = 5; a zero leaves the other; a high power gives the larger."""
    assert smooth_maximum(3, 4, 2) == pytest.approx(5)
    assert smooth_maximum(0.0, 4, 2) == 4
    assert smooth_maximum(3, 4, 1000) == pytest.approx(4)


def test_engine_overhead_comes_on_top_once_a_step() -> None:
    """Half a millisecond between steps lengthens a step by half a millisecond, and is told as overhead."""
    slow = Coefficients(**{name: getattr(PLAIN, name) for name in PLAIN.__slots__} | {"step_overhead_s": 5e-4})
    shape = decode_shape(4, 1000)
    plain, slowed = (CalibratedRoofline(deployed(), each).step(shape) for each in (PLAIN, slow))

    assert slowed.step_s - plain.step_s == pytest.approx(5e-4)
    assert slowed.overhead_s - plain.overhead_s == pytest.approx(5e-4)


def test_real_server_decodes_as_predicted() -> None:
    """vLLM on an RTX 4090 (a card the fit has not seen): median decode step within 5% over a run's decode seconds."""
    where = deployed(LLAMA_31_8B, load_accelerator("rtx-4090"))
    estimator, ideal = calibrated_roofline(where), estimator_for(where, "ideal")
    ratios, gaps = [], []
    with (DATA / "rtx4090_llama31_8b_decode.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            running = (int(row["running_before"]) + int(row["running_after"])) / 2
            share = (float(row["kv_cache_pct_before"]) + float(row["kv_cache_pct_after"])) / 200
            shape = StepShape(round(running), round(share * 41_408), 0, logit_rows=round(running))
            measured = running / float(row["output_tokens_per_s"])
            ratios.append(measured / estimator.seconds(shape))
            gaps.append(measured / ideal.seconds(shape))

    assert abs(median(ratios) - 1) < 0.05
    assert median(gaps) > 1.2  # what the ideal roofline misses


def test_mixed_step_costs_at_least_its_parts() -> None:
    """A prompt chunk beside decoding sequences takes longer than either alone, less than both one after the other."""
    estimator = calibrated_roofline(deployed(LLAMA_31_8B, load_accelerator("h100-sxm")))
    decode, chunk = decode_shape(32, 2000), prefill_shape(1, 512)
    both = StepShape(*(a + b for a, b in zip(decode, chunk, strict=True)))
    alone = [estimator.seconds(each) for each in (decode, chunk)]

    assert max(alone) < estimator.seconds(both) < sum(alone)


def test_fp8_is_faster_than_bf16_where_the_chip_has_it() -> None:
    """On an H100, fp8 weights, activations and cache shorten decode and prefill of a 70B model, not below half."""
    chip = load_accelerator("h100-sxm")
    wide = calibrated_roofline(deployed(LLAMA_31_70B, chip, tensor=4))
    narrow = calibrated_roofline(deployed(LLAMA_31_70B, chip, tensor=4, weights=FP8, kv=FP8, activations=FP8))

    for shape in (decode_shape(8, 2000), prefill_shape(1, 8192)):
        assert 0.5 < narrow.seconds(shape) / wide.seconds(shape) < 0.95


def test_hot_path_is_fast() -> None:
    """The simulator asks once an event: a mixed step costs some microseconds at most (about 0.7 on one 2026 core)."""
    estimator = calibrated_roofline(deployed(LLAMA_31_8B, load_accelerator("h100-sxm")))
    shapes = [StepShape(n, n * 900, 0, 1, 512 - n, 512 - n, 0, 100_000, 0, n + 1) for n in range(1, 257)]
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        for shape in shapes:
            estimator.seconds(shape)
        best = min(best, (time.perf_counter() - start) / len(shapes))

    assert best < 10e-6
