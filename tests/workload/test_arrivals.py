"""Arrival processes: scaling, order, and what they refuse (their distributions are tested in theory/)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from servewise.errors import InputError
from servewise.workload import arrivals
from servewise.workload.arrivals import Arrivals, Constant, Gamma, Poisson, Ramp

PROCESSES: list[Arrivals] = [
    Poisson(4.0),
    Gamma(4.0, 3.0),
    Constant(4.0),
    Ramp(1.0, 7.0, 2000.0),
    Ramp(7.0, 1.0, 2000.0),
]


def first(process: Arrivals, count: int, seed: int = 5) -> np.typing.NDArray[np.float64]:
    """The first ``count`` arrival times."""
    chunks = itertools.islice(process.times(np.random.default_rng(seed)), 1 + count // 16_384)
    return np.concatenate(list(chunks))[:count]


@pytest.mark.parametrize("process", PROCESSES, ids=str)
def test_times_ascend_from_above_zero(process: Arrivals) -> None:
    """No request may arrive before the run starts or before an earlier one, across chunk borders too."""
    times = first(process, 40_000)
    assert times[0] > 0
    assert np.all(np.diff(times) >= 0)


@pytest.mark.parametrize("process", PROCESSES, ids=str)
def test_at_rate_scales_the_same_pattern(process: Arrivals) -> None:
    """At twice the rate the same seed must give the same pattern in half the time."""
    assert process.at_rate(2 * process.rate_per_s).rate_per_s == pytest.approx(2 * process.rate_per_s)
    faster = first(process.at_rate(2 * process.rate_per_s), 5000)
    np.testing.assert_allclose(2 * faster, first(process, 5000), rtol=1e-9)


def test_gaps_add_up_over_chunks() -> None:
    """Gaps 1, 2 and then 3, 4 in the next chunk arrive at 1, 3, 6 and 10."""
    chunks = arrivals._running_sum(iter([np.array([1.0, 2.0]), np.array([3.0, 4.0])]))
    assert [chunk.tolist() for chunk in chunks] == [[1.0, 3.0], [6.0, 10.0]]


def test_constant_arrivals_are_exact_multiples_of_the_gap() -> None:
    """Request i of constant arrivals comes at (i + 1) / rate, without drift."""
    np.testing.assert_array_equal(first(Constant(3.0), 20_000), np.arange(1, 20_001) / 3.0)


def test_a_flat_ramp_is_a_poisson_process() -> None:
    """A ramp from a rate to the same rate must give the very times of Poisson arrivals at it."""
    np.testing.assert_allclose(first(Ramp(4.0, 4.0, 50.0), 1000), first(Poisson(4.0), 1000), rtol=1e-9)


@pytest.mark.parametrize("rate", [0, 0.0, -1.0, math.nan, math.inf, 1e12, True, "2"])
def test_a_rate_that_is_no_rate_is_refused(rate: float) -> None:
    """Zero, negative, NaN, infinite and absurd rates must be one InputError from every process."""
    for build in (Poisson, Constant, lambda r: Gamma(r, 2.0), lambda r: Ramp(1.0, r, 10.0), Poisson(1.0).at_rate):
        with pytest.raises(InputError, match="rate"):
            build(rate)


@pytest.mark.parametrize("cv", [0.0, -1.0, math.nan, 1e-4, 1000.0])
def test_a_senseless_variation_is_refused(cv: float) -> None:
    """A coefficient of variation outside 0.01 to 100 must be refused, with constant arrivals as the cure near 0."""
    with pytest.raises(InputError, match="coefficient of variation"):
        Gamma(1.0, cv)
