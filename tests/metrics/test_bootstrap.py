"""The block bootstrap of ratios: against NumPy's percentiles, and how often its intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from servewise.metrics.bootstrap import RESAMPLES, blocks_of, drawn, interval, ratio, resampled

SHARES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}


def test_resamples_are_what_numpy_makes_of_the_drawn_blocks() -> None:
    """Mean and percentiles of a resample are those of the values of its blocks, each as often as it was drawn."""
    rng = np.random.default_rng(1)
    values = rng.lognormal(0, 1, 137)
    block = blocks_of(137)
    draws = drawn(3, 20)[:5]
    found = resampled(values, block, draws)
    for place, draw in enumerate(draws):
        taken = np.repeat(values, draw[block].astype(int))
        assert found["mean"][place] == pytest.approx(taken.mean())
        for name, share in SHARES.items():
            assert found[name][place] == pytest.approx(np.percentile(taken, share))


def test_grouped_order_statistics_of_a_large_sample_stay_near() -> None:
    """Of 50,000 values the grouped percentiles are within 0.1% of NumPy's for p50 to p95, and 1% for p99."""
    rng = np.random.default_rng(2)
    values = rng.lognormal(0, 1, 50_000)
    found = resampled(values, blocks_of(50_000), np.ones((1, 20)))
    for name, share in SHARES.items():
        assert found[name][0] == pytest.approx(np.percentile(values, share), rel=0.01 if name == "p99" else 0.001)


def test_every_draw_has_as_many_blocks() -> None:
    """A resample has 20 blocks, drawn with replacement: each stands once on average, and is missing in 36%."""
    draws = drawn(0, 20)
    assert draws.shape == (RESAMPLES, 20)
    assert set(draws.sum(axis=1)) == {20.0}
    assert (draws == 0).mean() == pytest.approx((1 - 1 / 20) ** 20, abs=0.01)


def test_blocks_are_equal_and_in_order() -> None:
    """Of 50 values each of 20 blocks has 2 or 3, in order; fewer than 20 values are blocks of one."""
    assert set(np.bincount(blocks_of(50))) == {2, 3}
    assert (np.diff(blocks_of(50)) >= 0).all()
    assert blocks_of(3).tolist() == [0, 1, 2]


def test_intervals_that_cannot_be_are_none() -> None:
    """A ratio over nothing, or of one block, has no interval."""
    assert interval(ratio(np.ones(5), np.zeros(5)), 20) is None
    assert interval(np.ones(5), 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("linked", [0.0, 0.8])
def test_intervals_hold_the_true_ratio_as_often_as_they_say(linked: float) -> None:
    """120 pairs of runs of 400 requests, true ratio of means and medians 1.25: at least 88% of 95% intervals hold it.

    (Three deviations below 94%.) The requests' latencies share a factor (lognormal, its logarithm AR(1) of that
    correlation), as requests of one run do, and have noise of their own.
    """
    held = {"mean": 0, "p50": 0}
    for run in range(120):
        rng = np.random.default_rng(10_000 + run)
        shared = signal.lfilter([np.sqrt(1 - linked**2)], [1, -linked], rng.normal(size=500))[100:]
        a, b = (np.exp(0.3 * shared + 0.1 * rng.normal(size=400)) for _ in range(2))
        draws, block = drawn(run, 20)[:400], blocks_of(400)
        ours, theirs = resampled(a, block, draws), resampled(1.25 * b, block, draws)
        for name in held:
            found = interval(ratio(theirs[name], ours[name]), 20)
            assert found is not None
            held[name] += found[0] <= 1.25 <= found[1]
    assert min(held.values()) / 120 >= 0.88, held
