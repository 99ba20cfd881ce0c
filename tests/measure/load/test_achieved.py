"""Arrivals achieved against asked: the figures by hand, what chance explains, and peers' faults that must be seen."""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np
import pytest
from tests.measure.exchanges import exchange

from servewise.measure.load.achieved import achieved, achieved_by, by_chance, gaps_of
from servewise.workload.arrivals import Arrivals, Constant, Gamma, Poisson, Ramp
from servewise.workload.streams import stream


def times(arrivals: Arrivals, count: int, seed: int) -> np.typing.NDArray[np.float64]:
    """The first arrivals of a process."""
    return next(arrivals.times(stream(seed, "arrivals")))[:count]


def test_figures_by_hand() -> None:
    """Gaps 1, 3, 2: rate 1/2, standard deviation 1, CV 1/2; deviations -1, 1, 0 give a correlation of -1/2."""
    found = gaps_of([0.0, 1.0, 4.0, 6.0])
    assert (found.rate_per_s, found.cv, found.correlation) == pytest.approx((0.5, 0.5, -0.5))


def test_chance_is_that_of_the_exponential() -> None:
    """Poisson over n gaps: their sum is gamma(n), so the rate lies within n / its quantiles (99%)."""
    stats = pytest.importorskip("scipy.stats")
    low, high = by_chance(Poisson(7.0), 201)
    ends = [7.0 * 200 / stats.gamma.ppf(share, 200) for share in (0.995, 0.005)]
    assert (low.rate_per_s, high.rate_per_s) == pytest.approx(ends, rel=0.03)
    assert low.cv < 1 < high.cv
    assert low.correlation < 0 < high.correlation


@pytest.mark.parametrize("arrivals", [Poisson(5.0), Gamma(5.0, 3.0), Constant(5.0), Ramp(1.0, 9.0, 100.0)])
def test_a_process_that_came_as_asked_is_said_to(arrivals: Arrivals) -> None:
    """Of 8 runs with a millisecond of jitter at most 2 are outside (3 figures of 99% each: 0.24 expected)."""
    wrong = 0
    for seed in range(8):
        scheduled = times(arrivals, 300, seed)
        sent = scheduled + stream(seed, "jitter").random(300) * 1e-3
        wrong += achieved(scheduled.tolist(), sent.tolist(), arrivals).as_asked is False
    assert wrong <= 2


def test_a_poisson_that_repeats_its_gaps_is_seen() -> None:
    """One peer draws a gap once and uses it ten times: CV 1 as it should be, but its gaps follow each other."""
    gaps = np.repeat(stream(1, "gaps").exponential(0.2, 100), 10)
    sent = np.cumsum(gaps).tolist()
    found = achieved(sent, sent, Poisson(5.0))
    assert "correlation" in found.outside
    assert found.as_asked is False
    assert "correlation" in found.caveats[0].message


def test_a_constant_that_is_exponential_is_seen() -> None:
    """Another peer's constant rate has exponential gaps: CV 1 in place of 0."""
    sent = times(Poisson(5.0), 300, 1).tolist()
    assert "cv" in achieved(sent, sent, Constant(5.0)).outside


def test_a_rate_that_was_not_reached_is_seen() -> None:
    """A client that falls behind sends 300 requests at 4 a second in place of 5."""
    scheduled = times(Poisson(5.0), 300, 1)
    found = achieved(scheduled.tolist(), (scheduled * 1.25).tolist(), Poisson(5.0))
    assert "rate_per_s" in found.outside
    assert found.lateness_s[2] == pytest.approx(float(scheduled[-1]) * 0.25)


def test_a_schedule_without_a_process_has_no_verdict() -> None:
    """A trace is its own truth: rate, CV and lateness are given, no chance is in it."""
    found = achieved([0.0, 1.0, 3.0], [0.5, 1.5, 3.5])
    assert found.as_asked is None
    assert found.caveats == ()
    assert found.asked == found.sent
    assert found.lateness_s == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("sent", [[], [1.0], [1.0, 1.0], [1.0, 1.0, 1.0]])
def test_too_few_arrivals_are_no_figures(sent: list[float]) -> None:
    """Nothing is divided by zero."""
    found = achieved(sent, sent, Poisson(1.0) if len(sent) < 3 else None)
    assert isnan(found.sent.cv)
    assert found.as_asked is None


def test_only_first_attempts_that_left_count() -> None:
    """A repeat after a 429 and a request that never left are not arrivals."""
    done = [
        exchange(serial=0, scheduled=0.0, sent=0.0),
        exchange(serial=1, scheduled=1.0, sent=1.25),
        exchange(serial=1, scheduled=1.0, sent=5.0, retries=1),
        exchange(serial=2, scheduled=2.0, sent=nan),
        exchange(serial=3, scheduled=4.0, sent=inf),
    ]
    found = achieved_by(done)
    assert found.requests == 2
    assert found.lateness_s[2] == 0.25
