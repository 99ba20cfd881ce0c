"""Arrival processes against their distributions: fixed seeds, bounds that a true process passes 999 times of 1,000."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from servewise.workload.arrivals import Arrivals, Constant, Gamma, Poisson, Ramp

COUNT = 100_000


def times_of(process: Arrivals, seed: int) -> NDArray[np.float64]:
    """The first 100,000 arrival times [s]."""
    chunks = itertools.islice(process.times(np.random.default_rng(seed)), 7)
    return np.concatenate(list(chunks))[:COUNT]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_poisson_gaps_are_exponential(seed: int) -> None:
    """Gaps: F(t) = 1 - exp(-rate t), by Kolmogorov-Smirnov; successive gaps uncorrelated, |r| < 3.3 / sqrt(n)."""
    gaps = np.diff(times_of(Poisson(2.5), seed))
    assert stats.kstest(gaps, "expon", args=(0, 1 / 2.5)).pvalue > 0.001
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 3.3 / math.sqrt(len(gaps))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_poisson_counts_are_poisson(seed: int) -> None:
    """Counts in windows of 4 s at rate 2.5/s: P(k) = 10^k e^-10 / k!, by chi-square over k = 0..20."""
    times = times_of(Poisson(2.5), seed)
    windows = int(times[-1] // 4)
    counts = np.bincount(np.histogram(times, windows, (0, 4 * windows))[0], minlength=60)
    expected = windows * stats.poisson(10).pmf(np.arange(60))
    lumped = [np.concatenate(([each[:4].sum()], each[4:18], [each[18:].sum()])) for each in (counts, expected)]
    observed, wanted = lumped[0], lumped[1] * lumped[0].sum() / lumped[1].sum()
    assert stats.chisquare(observed, wanted).pvalue > 0.001


@pytest.mark.parametrize(("cv", "seed"), [(0.5, 1), (1.0, 2), (3.06, 3), (8.0, 4)])
def test_gamma_gaps_have_the_stated_distribution(cv: float, seed: int) -> None:
    """Gaps: gamma of shape 1 / cv², mean 1 / rate: the share under 1 ns is binomial, the rest by Kolmogorov-Smirnov.

    (Times of 50,000 s are doubles of 7 ps: shorter gaps are rounded.) Mean within 3.3 x cv / (rate sqrt(n)).
    """
    gaps = np.diff(times_of(Gamma(2.0, cv), seed))
    law = stats.gamma(cv**-2, scale=cv**2 / 2.0)
    short = law.cdf(1e-9)
    assert stats.binomtest(int((gaps < 1e-9).sum()), len(gaps), short).pvalue > 0.001
    assert stats.kstest(gaps[gaps >= 1e-9], lambda x: (law.cdf(x) - short) / (1 - short)).pvalue > 0.001
    assert abs(gaps.mean() - 0.5) < 3.3 * cv * 0.5 / math.sqrt(len(gaps))


@pytest.mark.parametrize("cv", [0.5, 3.06])
def test_gamma_gaps_have_the_stated_variation(cv: float) -> None:
    """Sample CV within 3.3 standard errors; var(s/m) ~ cv² (mu4 / sigma^4 - 1 - 4 g cv + 4 cv²) / 4n, g = 2 cv."""
    gaps = np.diff(times_of(Gamma(2.0, cv), 9))
    excess = 6 * cv**2
    variance = cv**2 * (excess + 2 - 4 * 2 * cv * cv + 4 * cv**2) / 4 / len(gaps)
    assert abs(gaps.std() / gaps.mean() - cv) < 3.3 * math.sqrt(variance)


def test_constant_gaps_do_not_vary() -> None:
    """Constant arrivals: every gap is 1 / rate to rounding (a peer's "constant" is exponential)."""
    gaps = np.diff(times_of(Constant(2.5), 1))
    assert gaps.max() - gaps.min() < 1e-9


@pytest.mark.parametrize(("start", "end"), [(1.0, 9.0), (9.0, 1.0), (0.0, 10.0)])
def test_ramp_arrivals_follow_the_cumulative_rate(start: float, end: float) -> None:
    """Given their number, times in the ramp are distributed as (a t + (b - a) t² / 2T) / ((a + b) T / 2), by K-S."""
    over = 10_000.0
    times = times_of(Ramp(start, end, over), 4)
    within = times[times < over]

    def expected(t: NDArray[np.float64]) -> NDArray[np.float64]:
        share: NDArray[np.float64] = (start * t + (end - start) * t**2 / (2 * over)) / ((start + end) * over / 2)
        return share

    assert abs(len(within) - 50_000) < 3.3 * math.sqrt(50_000)
    assert stats.kstest(within, expected).pvalue > 0.001
    after = times[times > over]
    assert abs(np.diff(after).mean() * end - 1) < 3.3 / math.sqrt(len(after))
