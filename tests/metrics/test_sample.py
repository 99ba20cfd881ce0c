"""Percentiles: NumPy's definition, weights as repetition, intervals that hold their value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from servewise.metrics.sample import SHARES, percentiles, rate, weighted_mean

VALUES = st.floats(0, 1e6, allow_nan=False)


@given(hnp.arrays(np.float64, st.integers(1, 60), elements=VALUES))
def test_percentiles_are_numpys(values: np.typing.NDArray[np.float64]) -> None:
    """Without weights, each percentile is ``numpy.quantile`` (linear), the mean the mean, n the size."""
    found = percentiles(values)
    for name, share in SHARES.items():
        assert getattr(found, name) == pytest.approx(np.quantile(values, share), rel=1e-12, abs=1e-9)
    assert found.n == len(values)
    assert found.mean == pytest.approx(values.mean())


@given(st.lists(st.tuples(VALUES, st.integers(0, 5)), min_size=1, max_size=40))
def test_weights_are_repetitions(pairs: list[tuple[float, int]]) -> None:
    """A value of weight w counts as w values, for the mean and for every percentile; weight 0 as none."""
    values, weights = (np.array(column, float) for column in zip(*pairs, strict=True))
    repeated = np.repeat(values, weights.astype(int))
    found = percentiles(values, weights)
    if len(repeated) == 0:
        assert found.n == 0
        return
    for name, share in SHARES.items():
        assert getattr(found, name) == pytest.approx(np.quantile(repeated, share), rel=1e-12, abs=1e-9)
    assert found.n == len(repeated)
    assert found.mean == pytest.approx(repeated.mean())


@given(hnp.arrays(np.float64, st.integers(20, 200), elements=VALUES))
def test_intervals_hold_their_value(values: np.typing.NDArray[np.float64]) -> None:
    """Each interval includes its percentile, and those of percentiles lie within the sample."""
    found = percentiles(values)
    for name, (low, high) in found.ci95.items():
        assert low <= getattr(found, name) * (1 + 1e-12)
        assert high >= getattr(found, name) * (1 - 1e-12)
        assert name == "mean" or (values.min() <= low and (high <= values.max() or high == math.inf))


def test_a_percentile_beyond_the_sample_has_no_upper_end() -> None:
    """100 values cannot bound their p99 from above (the largest exceeds it with 63%): infinite; p50 is bounded."""
    found = percentiles(np.random.default_rng(0).standard_exponential(100)).ci95
    assert found["p99"][1] == math.inf
    assert found["p50"][1] < 2.0


def test_few_values_have_no_interval_and_none_have_no_value() -> None:
    """Below 20 values no interval is claimed; an empty sample is NaN with n = 0."""
    assert percentiles(np.arange(19.0)).ci95 == {}
    empty = percentiles(np.empty(0))
    assert empty.n == 0
    assert math.isnan(empty.p95)


def test_a_sample_that_begins_with_almost_all_of_itself_has_no_interval() -> None:
    """25 gaps of which the first stands for a million are one block, and nothing says how blocks differ."""
    values, weights = np.arange(25.0), np.r_[1e6, np.ones(24)]
    found = percentiles(values, weights)

    assert (found.p50, found.n, found.ci95) == (0.0, 1_000_024, {})
    mean, interval = weighted_mean(values, weights)
    assert mean == pytest.approx(300 / 1_000_024)
    assert interval is None


def test_equal_values_have_intervals_of_no_width() -> None:
    """A sample of one value repeated has exactly that value, with intervals of zero width."""
    found = percentiles(np.full(100, 0.25))
    assert set(found.ci95.values()) == {(0.25, 0.25)}


def test_rate_and_weighted_mean_are_their_definitions() -> None:
    """100 counts over 50 s are 2/s, evenly spread with no width; a mean weighs its values."""
    even = np.arange(100) / 2 + 0.25
    mean, interval = rate(even, np.ones(100), 50.0)
    assert mean == 2.0
    assert interval == pytest.approx((2.0, 2.0))
    assert rate(even, np.ones(100), 0.0) == (0.0, None)
    assert weighted_mean(np.array([1.0, 4.0]), np.array([2.0, 1.0])) == (2.0, None)
    assert math.isnan(weighted_mean(np.empty(0), np.empty(0))[0])
