"""Do 95% intervals hold the truth 95 times of 100? Simulated from laws whose truth is known.

Each test counts how many of many runs' intervals hold the true value. The bar is 90% of the runs, as the method is
asymptotic; an interval that is much too wide would pass, so its width is held against the ideal as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from servewise.metrics.sample import SHARES, percentiles, rate, weighted_mean

Floats = NDArray[np.float64]
RUNS = 300
SAMPLES: list[tuple[str, Callable[[np.random.Generator, int], Floats], stats.rv_continuous]] = [
    ("exponential", lambda rng, n: rng.standard_exponential(n), stats.expon()),
    ("lognormal", lambda rng, n: rng.lognormal(0, 1, n), stats.lognorm(s=1)),
]


@pytest.mark.parametrize(("name", "draw", "law"), SAMPLES, ids=[each[0] for each in SAMPLES])
@pytest.mark.parametrize("count", [200, 2000])
def test_independent_values(
    name: str, draw: Callable[[np.random.Generator, int], Floats], law: stats.rv_continuous, count: int
) -> None:
    """Mean, p50, p90, p95 (and p99 from 2,000 values) of exponential and lognormal samples are covered."""
    rng = np.random.default_rng(11)
    truth = {"mean": law.mean(), **{each: law.ppf(share) for each, share in SHARES.items()}}
    if count < 1000:
        del truth["p99"]
    held = dict.fromkeys(truth, 0)
    for _ in range(RUNS):
        found = percentiles(draw(rng, count)).ci95
        for each, value in truth.items():
            held[each] += found[each][0] <= value <= found[each][1]
    least = 0.85 if (name, count) == ("lognormal", 200) else 0.90  # a heavy tail's mean is not normal at 200
    assert min(held.values()) >= least * RUNS, held


def ar1(rng: np.random.Generator, count: int, correlation: float) -> Floats:
    """Standard normal values, each correlated with the one before."""
    from scipy.signal import lfilter

    noise = rng.standard_normal(count + 500) * math.sqrt(1 - correlation**2)
    values: Floats = lfilter([1], [1, -correlation], noise)[500:]
    return values


def test_values_that_resemble_their_neighbours() -> None:
    """AR(1) with correlation 0.9, 5,000 values: covered, where intervals that assume independence hold under 60%."""
    rng = np.random.default_rng(5)
    truth = {"mean": 0.0, **{each: stats.norm.ppf(share) for each, share in SHARES.items()}}
    held, naive = dict.fromkeys(truth, 0), 0
    for _ in range(RUNS):
        values = ar1(rng, 5000, 0.9)
        found = percentiles(values).ci95
        for each, value in truth.items():
            held[each] += found[each][0] <= value <= found[each][1]
        naive += abs(values.mean()) <= 1.96 * values.std() / math.sqrt(len(values))
    assert min(held.values()) >= 0.90 * RUNS, held
    assert naive < 0.6 * RUNS


def test_dependence_that_is_longer_than_a_block() -> None:
    """AR(1) with correlation 0.985, 2,000 values (blocks of 100, 1.5 times the correlation's reach): 88% are covered.

    Block means alone would hold 82-85% of these; their own correlation makes up for the rest.
    """
    rng, runs = np.random.default_rng(4), 600
    truth = {"mean": 0.0, "p50": 0.0, "p90": stats.norm.ppf(0.9)}
    held = dict.fromkeys(truth, 0)
    for _ in range(runs):
        found = percentiles(ar1(rng, 2000, 0.985)).ci95
        for each, value in truth.items():
            held[each] += found[each][0] <= value <= found[each][1]
    assert min(held.values()) >= 0.88 * runs, held


def test_waiting_times_of_a_queue() -> None:
    """M/M/1 at load 0.5: sojourn times are exponential of mean 1 / (mu - lambda); 10,000 requests a run."""
    rng = np.random.default_rng(6)
    law = stats.expon(scale=1 / (1 - 0.5))
    truth = {"mean": law.mean(), **{each: law.ppf(share) for each, share in SHARES.items()}}
    held = dict.fromkeys(truth, 0)
    for _ in range(200):
        found = percentiles(sojourns(rng, 10_000, 0.5)).ci95
        for each, value in truth.items():
            held[each] += found[each][0] <= value <= found[each][1]
    assert min(held.values()) >= 0.90 * 200, held


def sojourns(rng: np.random.Generator, count: int, load: float) -> Floats:
    """Sojourn times of an M/M/1 queue of unit service, by Lindley's recursion, begun in equilibrium."""
    service, gaps = rng.standard_exponential(count), rng.standard_exponential(count) / load
    wait = rng.standard_exponential() / (1 - load) if rng.random() < load else 0.0
    steps = np.concatenate(([wait], service[:-1] - gaps[1:]))
    walk = np.cumsum(steps)
    waits: Floats = walk - np.minimum.accumulate(np.minimum(walk, 0.0))
    return waits + service


def test_intervals_are_not_wider_than_need_be() -> None:
    """For independent exponential values, p95 and mean: on average within 25% of the ideal asymptotic width."""
    rng, count = np.random.default_rng(8), 2000
    ideal = {
        "mean": 2 * 1.96 / math.sqrt(count),
        "p95": 2 * 1.96 * math.sqrt(0.95 * 0.05 / count) / 0.05,
    }
    widths: dict[str, list[float]] = {name: [] for name in ideal}
    for _ in range(RUNS):
        found = percentiles(rng.standard_exponential(count)).ci95
        for name, column in widths.items():
            column.append(found[name][1] - found[name][0])
    for name, column in widths.items():
        assert 0.95 * ideal[name] < np.mean(column) < 1.25 * ideal[name], name


def test_rates_and_weighted_means() -> None:
    """Counts of a Poisson process, and a mean weighted by independent weights, are covered."""
    rng, held_rate, held_mean = np.random.default_rng(9), 0, 0
    for _ in range(RUNS):
        times = np.sort(rng.uniform(0, 500, rng.poisson(1000)))
        _, found = rate(times, np.ones(len(times)), 500.0)
        assert found is not None
        held_rate += found[0] <= 2.0 <= found[1]
        _, found = weighted_mean(rng.standard_exponential(500), rng.integers(1, 9, 500).astype(float))
        assert found is not None
        held_mean += found[0] <= 1.0 <= found[1]
    assert held_rate >= 0.90 * RUNS
    assert held_mean >= 0.90 * RUNS
