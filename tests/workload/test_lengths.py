"""Length distributions: what their parameters promise, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from servewise.errors import InputError
from servewise.workload.lengths import Empirical, Fixed, Lengths, Lognormal, Uniform

SHAPES: list[Lengths] = [
    Fixed(512),
    Uniform(3, 9),
    Lognormal(58, 0.77),
    Lognormal(608, 0.96, cap=1000),
    Empirical([1, 5, 5, 40]),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sample_mean_is_the_stated_mean(shape: Lengths) -> None:
    """The mean of 200,000 draws must lie within 5 standard errors (and half a token of rounding) of ``mean``."""
    drawn = shape.draw(np.random.default_rng(7), 200_000)
    assert abs(drawn.mean() - shape.mean) <= 5 * drawn.std() / math.sqrt(len(drawn)) + 0.5 * (drawn.std() > 0)


def test_uniform_mean_is_exact_and_ends_are_drawn() -> None:
    """Every whole length of 3..9 must come, equally often by a chi-square test at 0.1%."""
    drawn = Uniform(3, 9).draw(np.random.default_rng(3), 70_000)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert stats.chisquare(counts).pvalue > 0.001


def test_lognormal_quantiles_are_those_of_the_closed_form() -> None:
    """p50 and p95 of the draws must be median and median x exp(1.645 sigma) within sampling error."""
    drawn = Lognormal(58, 0.77).draw(np.random.default_rng(1), 400_000)
    assert np.quantile(drawn, 0.5) == pytest.approx(58, rel=0.01)
    assert np.quantile(drawn, 0.95) == pytest.approx(58 * math.exp(1.6448536 * 0.77), rel=0.01)


def test_lognormal_mean_agrees_with_scipy() -> None:
    """The closed-form mean with a cap must equal SciPy's numeric integral of min(x, cap)."""
    frozen = stats.lognorm(s=0.9, scale=600)
    integral = frozen.expect(lambda x: min(x, 1500.0), ub=1500) + 1500 * frozen.sf(1500)
    assert Lognormal(600, 0.9, cap=1500).mean == pytest.approx(integral, rel=1e-6)
    assert Lognormal(600, 0.9).mean == pytest.approx(frozen.mean())


def test_lognormal_from_mean_and_from_percentile_reproduce_what_they_were_given() -> None:
    """A lognormal built from its mean has that mean; one built from its p99 has that p99."""
    assert Lognormal.from_mean(608, 968).mean == pytest.approx(968)
    built = Lognormal.from_percentile(608, 5650, share=0.99)
    assert stats.lognorm(s=built.sigma, scale=built.median).ppf(0.99) == pytest.approx(5650)


def test_lengths_are_at_least_one_and_at_most_the_cap() -> None:
    """A wide lognormal of tiny median must never give 0 tokens, nor more than its cap."""
    drawn = Lognormal(1, 3, cap=50).draw(np.random.default_rng(0), 10_000)
    assert drawn.min() == 1
    assert drawn.max() == 50


@pytest.mark.parametrize(
    "build",
    [
        lambda: Fixed(0),
        lambda: Fixed(True),
        lambda: Fixed(1.5),  # type: ignore[arg-type]
        lambda: Fixed(10**12),
        lambda: Uniform(9, 3),
        lambda: Uniform(0, 3),
        lambda: Lognormal(math.nan, 1),
        lambda: Lognormal(10, -1),
        lambda: Lognormal(10, math.nan),
        lambda: Lognormal(10, 1, cap=0),
        lambda: Lognormal.from_mean(10, 9),
        lambda: Lognormal.from_percentile(10, math.inf),
        lambda: Empirical([]),
        lambda: Empirical([1, 0]),
        lambda: Empirical([1, math.nan]),  # type: ignore[list-item]
    ],
)
def test_senseless_lengths_are_refused(build: object) -> None:
    """Zero, negative, NaN, fractional and absurd lengths must be an InputError, not a distribution."""
    with pytest.raises(InputError):
        build()  # type: ignore[operator]
