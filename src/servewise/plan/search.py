"""The highest rate at which a server keeps the SLO, by bisection below its saturation.

The saturation rate, measured on a backlog, is the ceiling, or what no batch could pass (``throughput``) where that is
lower: above it a queue grows without end, and a run that still keeps the SLO is only too short to show it. From there,
or from a guess, in steps until the SLO holds on one side and fails on the other, then by halves (in the logarithm)
until the two are within the wanted precision. Runs that cannot keep the SLO any more end early. The rate that is
returned was itself seen to hold. Where only a rate above a given one is of use, the search ends as soon as it cannot
be one: each step that it does make is the same as without.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary, summarise
from servewise.plan.hopeless import Hopeless
from servewise.plan.lengths import lengths_of
from servewise.plan.rate import most_per_s
from servewise.plan.saturation import Knee, saturation
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.simulate.run import Run

PRECISION = 0.02
STEPS_DOWN = (0.95, 0.9, 0.8)  # from a guess that fails, each from the rate before; then as without a guess
STEP_DOWN, STEP_UP = 0.7, 1.05
LOWEST = 0.01  # of the saturation rate: below it requests hardly meet
FILLINGS = 2  # of the slots by the backlog


@dataclass(frozen=True, slots=True, kw_only=True)
class Highest:
    """``rate_per_s`` is the highest at which the SLO was seen to hold, 0 where it never was.

    ``summary`` and ``run`` are those of that rate, or of ``lowest_per_s``, the lowest rate tried; ``runs`` counts the
    simulations.
    """

    rate_per_s: float
    lowest_per_s: float
    summary: RunSummary
    run: Run
    knee: Knee
    runs: int


class Trial:
    """Runs of one server under one traffic, remembered by rate."""

    def __init__(self, server: Server, traffic: Traffic, slo: Slo) -> None:
        self._server, self._traffic, self._slo = server, traffic, slo
        self.runs = 0
        self.last: tuple[float, Run] | None = None  # the last that held, or the last of all while none has
        self._held = False

    def holds(self, rate_per_s: float) -> bool:
        """Whether the SLO holds at that rate."""
        requests = self._traffic.at_rate(rate_per_s)
        hopeless = Hopeless(self._slo, len(requests))
        run = self._server.run(requests, until=hopeless)
        self.runs += 1
        held = len(run.requests) == len(requests) and self._slo.holds(summary_of(run, self._slo))
        if held or not self._held:
            self.last = (rate_per_s, run)
        self._held = self._held or held
        return held


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The highest rate is below ``most_per_s``, and that is no more than was wanted; ``runs`` simulations showed it."""

    most_per_s: float
    runs: int


def highest_rate(
    server: Server, traffic: Traffic, slo: Slo, guess_per_s: float | None = None, precision: float = PRECISION
) -> Highest:
    """The highest rate of ``traffic`` at which ``server`` keeps ``slo``; ``guess_per_s`` is tried first."""
    possible = most_per_s(server, lengths_of(traffic, server.hash_block_tokens))
    found = highest_above(0.0, server, traffic, slo, guess_per_s, precision, possible_per_s=possible)
    assert isinstance(found, Highest), "every rate is above 0"
    return found


def highest_above(
    wanted_per_s: float,
    server: Server,
    traffic: Traffic,
    slo: Slo,
    guess_per_s: float | None = None,
    precision: float = PRECISION,
    *,
    possible_per_s: float,
) -> Highest | Behind:
    """As ``highest_rate``, or that it is below ``wanted_per_s``; ``possible_per_s`` is what no batch could pass."""
    knee = saturation(server, traffic.requests, FILLINGS)
    trial = Trial(server, traffic, slo)
    ceiling = min(knee.middle_per_s, possible_per_s)
    low, high = 0.0, ceiling
    if ceiling > wanted_per_s:
        low, high = _bracket(trial, guess_per_s, ceiling, wanted_per_s)
        if low > 0:
            low, high = _halve(trial, low, high, precision, wanted_per_s)
    if 0 < high <= wanted_per_s:
        return Behind(most_per_s=high, runs=trial.runs + 1)
    run = trial.last[1] if trial.last else server.run(())
    return Highest(
        rate_per_s=low,
        lowest_per_s=trial.last[0] if trial.last else 0.0,
        summary=summary_of(run, slo),
        run=run,
        knee=knee,
        runs=trial.runs + 1,
    )


def _bracket(trial: Trial, guess: float | None, ceiling: float, wanted: float) -> tuple[float, float]:
    """(a rate that holds or 0, one that does not or the ceiling); the second no higher than ``wanted``: given up."""
    start = ceiling * 0.95 if guess is None else min(guess, ceiling * 0.99)
    if trial.holds(start):
        return _upwards(trial, start, ceiling)
    high, steps = start, iter(() if guess is None else STEPS_DOWN)
    while high > max(ceiling * LOWEST, wanted):
        low = high * next(steps, STEP_DOWN)
        if trial.holds(low):
            return low, high
        high = low
    return 0.0, high


def _upwards(trial: Trial, low: float, ceiling: float) -> tuple[float, float]:
    high, step = min(low * STEP_UP, ceiling), STEP_UP
    while high < ceiling and trial.holds(high):
        step *= step
        low, high = high, min(high * step, ceiling)
    return low, high


def _halve(trial: Trial, low: float, high: float, precision: float, wanted: float) -> tuple[float, float]:
    while high > max(low * (1 + precision), wanted):
        middle = sqrt(low * high)
        low, high = (middle, high) if trial.holds(middle) else (low, middle)
    return low, high


def summary_of(run: Run, slo: Slo | None) -> RunSummary:
    """The summary of a run."""
    return summarise(run.requests, run.steps, slots=run.slots, slo=slo)
