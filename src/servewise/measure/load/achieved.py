"""The arrivals that came beside those that were asked for, and what chance alone would do.

Of a process whose gaps are drawn, a run of n requests has another rate and spread than the process: ``by_chance`` is
the interval in which 99% of runs of that many requests lie, found by drawing 500 of them (100 of the longest). A run
further outside it than ``TOLERATED`` (sending has jitter) did not come as asked: a "Poisson" that repeats its gaps
fails by its correlation, a "constant" that is exponential by its CV.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite, nan

import numpy as np
from numpy.typing import NDArray

from servewise.caveats import Caveat
from servewise.measure.exchange import Exchange
from servewise.workload.arrivals import Arrivals, Ramp
from servewise.workload.streams import stream

Floats = NDArray[np.float64]
MOST_RUNS, LEAST_RUNS, DRAWN = 500, 100, 5_000_000
LEVEL = 0.99
LEAST = 3  # arrivals: two gaps
FLAT_CV = 0.05  # below it gaps are all but equal, and what correlation there is comes from jitter
TOLERATED = {"rate_per_s": 0.01, "cv": 0.05, "correlation": 0.05}  # the rate's is relative


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Of a series of arrivals: rate [1/s], coefficient of variation of its gaps, correlation of neighbouring gaps.

    The correlation is 0 where the gaps are all but equal (CV under 0.05).
    """

    rate_per_s: float
    cv: float
    correlation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Achieved:
    """``asked`` is the schedule's, ``sent`` what left; ``by_chance`` the lowest and highest that the process explains.

    ``lateness_s``: sent - scheduled at p50, p99 and the highest. ``arrivals`` names the process.
    """

    requests: int
    asked: Gaps
    sent: Gaps
    lateness_s: tuple[float, float, float]
    by_chance: tuple[Gaps, Gaps] | None = None
    arrivals: str = "times of its own"

    @property
    def outside(self) -> tuple[str, ...]:
        """The figures of what was sent that chance does not explain."""
        if self.by_chance is None:
            return ()
        low, high = self.by_chance
        return tuple(name for name in TOLERATED if not _within(self.sent, low, high, name))

    @property
    def as_asked(self) -> bool | None:
        """Whether what was sent is the process that was asked for; None where that is no process, or too few came."""
        return None if self.by_chance is None else not self.outside

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """That requests did not leave as asked, with the figures."""
        if self.by_chance is None or not self.outside:
            return ()
        low, high = self.by_chance
        told = "; ".join(
            f"{name} {getattr(self.sent, name):.4g}, by chance {getattr(low, name):.4g} to {getattr(high, name):.4g}"
            for name in self.outside
        )
        message = f"requests did not leave as {self.arrivals}: {told}"
        return (Caveat("arrivals-not-as-asked", message, "lower the rate, lift the cap, or use more workers"),)


def gaps_of(times_s: Sequence[float] | Floats) -> Gaps:
    """The figures of arrivals at ``times_s``, in any order; NaN where there are too few."""
    times = np.sort(np.asarray(times_s, float))
    gaps = np.diff(times)
    mean = float(gaps.mean()) if len(gaps) else nan
    if len(times) < LEAST or mean == 0:
        return Gaps(rate_per_s=1 / mean if mean else nan, cv=nan, correlation=nan)
    spread = gaps - mean
    power = float(spread @ spread)
    cv = float(np.sqrt(power / (len(gaps) - 1))) / mean
    return Gaps(
        rate_per_s=1 / mean, cv=cv, correlation=0.0 if cv < FLAT_CV else float(spread[1:] @ spread[:-1]) / power
    )


def achieved(
    scheduled_s: Sequence[float], sent_s: Sequence[float], arrivals: Arrivals | None = None, *, seed: int = 0
) -> Achieved:
    """What was asked and sent, pair by pair; ``arrivals`` is the process that the schedule was drawn from, if any."""
    scheduled, sent = np.asarray(scheduled_s, float), np.asarray(sent_s, float)
    late = sent - scheduled
    return Achieved(
        requests=len(sent),
        asked=gaps_of(scheduled),
        sent=gaps_of(sent),
        lateness_s=(_quantile(late, 0.5), _quantile(late, 0.99), _quantile(late, 1.0)),
        by_chance=by_chance(arrivals, len(sent), seed) if arrivals is not None and len(sent) >= LEAST else None,
        arrivals="times of its own" if arrivals is None else str(arrivals),
    )


def achieved_by(exchanges: Iterable[Exchange], arrivals: Arrivals | None = None, *, seed: int = 0) -> Achieved:
    """The same of the first attempts that left, whatever became of them."""
    pairs = [(each.scheduled_s, each.sent_s) for each in exchanges if each.retries == 0 and isfinite(each.sent_s)]
    return achieved([pair[0] for pair in pairs], [pair[1] for pair in pairs], arrivals, seed=seed)


def by_chance(arrivals: Arrivals, count: int, seed: int = 0) -> tuple[Gaps, Gaps]:
    """The lowest and highest figures between which 99% of runs of ``count`` arrivals of that process lie."""
    wanted = min(max(DRAWN // count, LEAST_RUNS), MOST_RUNS)
    runs = [gaps_of(times) for times in islice(_runs(arrivals, count, stream(seed, "chance")), wanted)]
    ends = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    low, high = (
        Gaps(**{name: float(np.quantile([getattr(run, name) for run in runs], end)) for name in Gaps.__slots__})
        for end in ends
    )
    return low, high


def _runs(arrivals: Arrivals, count: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Runs of ``count`` arrivals without end: pieces of one series where gaps are alike, each its own on a ramp."""
    while True:
        chunks = arrivals.times(rng)
        series = next(chunks)
        while len(series) < count:
            series = np.concatenate((series, next(chunks)))
        pieces = 1 if isinstance(arrivals, Ramp) else len(series) // count
        yield from (series[piece * count : (piece + 1) * count] for piece in range(pieces))


def _within(gaps: Gaps, low: Gaps, high: Gaps, name: str) -> bool:
    scale = getattr(high, name) if name == "rate_per_s" else 1.0
    room = TOLERATED[name] * scale
    return bool(getattr(low, name) - room <= getattr(gaps, name) <= getattr(high, name) + room)


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else nan
