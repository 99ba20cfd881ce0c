"""MSER-5: how much of the beginning of a run to leave out, found from the run itself, where it must be.

White, Cobb and Spratt 2000, "A comparison of five steady-state truncation heuristics for simulation" (WSC 2000), after
White 1997 (Simulation 69:6): of the means Y of successive batches of 5 observations, cut the first d, where d makes the
marginal standard error of the mean of the rest least:

    d* = argmin over d of  1 / (n - d)² x sum over j > d of (Y_j - mean of Y_d+1 .. Y_n)²

Only d up to n / 2 is looked at: a least value at that limit says that the run was too short to show a steady state;
here only where the values also rise or fall throughout.

The rule alone does harm where nothing need be cut: in a queue it cuts a busy period that happens to come early, and the
mean of the rest is too low. Hence a cut is made only where the mean of what it removes lies over 6 standard errors from
that of the rest (the errors from blocks of time, ``metrics.sample``). Measured by benchmarks/accuracy/steady_window.py,
bias of the mean over 300 runs each:

    M/D/1 queue                  no cut    rule alone   here          slow start, 500 values    no cut   alone   here
    load 0.5, 500 requests       -0.2%     -3.1%        -0.5%         4x, decays over 20        +12.4%   +0.7%   +0.7%
    load 0.8, 2,000 requests     -0.6%     -4.8%        -1.3%         2x, decays over 40         +7.8%   +1.1%   +2.4%
    (95% error 1.0% and 1.6%)                                         2x, decays over 100       +19.7%   +6.8%   +9.5%
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servewise.metrics.sample import weighted_mean

BATCH = 5
FEWEST = 10 * BATCH  # observations below which nothing can be said
SAME = 1e-8  # of the largest: what batches differ by less is rounding, of which no minimum is made
APART = 6.0  # standard errors: the place of the cut was chosen among many, and values of a queue hang together
STRETCHES, DRIFT = 20, 0.6
NORMAL_REACH = 2.1  # of a 95% interval from 20 blocks, in standard errors (Student, 19 degrees)

Floats = NDArray[np.float64]


class Truncation(NamedTuple):
    """Leave out the first ``first`` observations; ``settled`` is False where no steady state shows."""

    first: int
    settled: bool


def transient(values: Floats) -> Truncation:
    """What to cut of ``values`` in order of time: as MSER-5 says, where that is no chance.

    >>> transient(np.r_[np.full(20, 9.0), np.tile([1.0, 1.1], 100)])
    Truncation(first=20, settled=True)
    """
    found = mser5(values)
    if len(values) < FEWEST:
        return found
    if not found.settled:
        return Truncation(0, settled=not _drifts(values))
    if found.first and _apart(values[: found.first], values[found.first :]) <= APART:
        return Truncation(0, settled=True)
    return found


def mser5(values: Floats) -> Truncation:
    """The truncation by the rule alone; of fewer than 50 nothing is cut, and nothing known."""
    if len(values) < FEWEST:
        return Truncation(0, settled=False)
    means = values[: len(values) // BATCH * BATCH].reshape(-1, BATCH).mean(axis=1)
    equal = SAME * np.abs(means).max()
    means = means - means.mean()  # so that the squares below lose no digits
    kept = np.arange(len(means), 0, -1)
    sums, squares = (np.cumsum(each[::-1])[::-1] for each in (means, means**2))
    errors = np.maximum(squares - sums**2 / kept - kept * equal**2, 0.0) / kept**2
    half = len(means) // 2
    cut = int(np.argmin(errors[: half + 1]))
    return Truncation(0, settled=False) if cut == half else Truncation(cut * BATCH, settled=True)


def _drifts(values: Floats) -> bool:
    """Whether the means of 20 stretches rise or fall throughout: Kendall's rank correlation with time beyond 0.6.

    For stretches that do not hang together that is 3.7 standard deviations (Kendall and Gibbons 1990, chapter 4).
    """
    means = np.array([each.mean() for each in np.array_split(values, STRETCHES)])
    signs = np.sign(means[None, :] - means[:, None])
    tau = float(np.triu(signs, 1).sum()) / (STRETCHES * (STRETCHES - 1) / 2)
    return abs(tau) > DRIFT


def _apart(removed: Floats, kept: Floats) -> float:
    """How many standard errors the two means lie apart; that of the kept values holds for both, by their number."""
    mean, interval = weighted_mean(kept, np.ones(len(kept)))
    if interval is None:
        return 0.0
    error = (interval[1] - mean) / NORMAL_REACH * math.sqrt(1 + len(kept) / len(removed))
    distance = abs(float(removed.mean()) - mean)
    if distance <= SAME * float(np.abs(kept).max()):
        return 0.0
    return distance / error if error > 0 else math.inf
