"""Is a run in balance, or does its queue grow as long as it runs?

Above saturation a percentile is no property of the system: it grows with the length of the run. The backlog (requests
that should have been sent and are not yet admitted; not yet ended, where admission is not known) is read at 21 instants
after the first tenth of the arrivals' span. Its 20 increments are arrivals minus departures. Above saturation they are
nearly independent, with the mean (offered rate - capacity) x interval, so that mean -/+ t s / sqrt(20) is a 95%
interval of the growth (a random walk with drift; Asmussen 2003, Applied Probability and Queues, X.1). In balance they
cancel each other and the interval is wider than it need be: no false alarm, but a short run near saturation stays
"unclear", which is what can be said of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from servewise.metrics import latency
from servewise.metrics.percentiles import Interval
from servewise.metrics.student import t_quantile
from servewise.records.columns import REJECTED, RequestColumns

Floats = NDArray[np.float64]
WARM_UP, PARTS = 0.1, 20
TOLERANCE = 0.02  # growth of 2% of the offered rate: what a run in balance must rule out
LATE_PARTS, LATE_NEEDED = 5, 4  # of the second half, in how many parts the queue must have been empty
FEWEST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """``steady``, ``growing``, or ``unclear`` where the run is too short to tell.

    ``growth_per_s`` is how many requests the backlog gains each second, with its 95% interval; ``offered_per_s`` the
    arrivals. ``reason`` is one line for people.
    """

    verdict: Literal["steady", "growing", "unclear"]
    growth_per_s: float
    ci95: Interval
    offered_per_s: float
    reason: str

    @property
    def stable(self) -> bool:
        """Whether the run is known to be in balance, so that its percentiles mean something."""
        return self.verdict == "steady"

    @property
    def growth_share(self) -> float:
        """Growth over offered rate: the share of the traffic that the server does not keep up with."""
        return self.growth_per_s / self.offered_per_s if self.offered_per_s else math.nan


def trend(requests: RequestColumns) -> Balance:
    """Whether the backlog of an open-loop run is steady or grows (a closed loop is always in balance)."""
    arrived, left = _times(requests)
    if len(arrived) < FEWEST or arrived[-1] <= arrived[0]:
        return too_few(len(arrived))
    span = float(arrived[-1] - arrived[0])
    instants = instants_of(float(arrived[0]), span)
    backlog = np.searchsorted(arrived, instants, side="right") - np.searchsorted(left, instants, side="right")
    return balance(len(arrived), span, backlog, empties=_empties(arrived, left))


def too_few(count: int) -> Balance:
    """What can be said of so few requests, or of such that all come at once."""
    return Balance(
        verdict="unclear",
        growth_per_s=math.nan,
        ci95=(-math.inf, math.inf),
        offered_per_s=math.nan,
        reason=f"{count} requests are too few to see a trend; run at least {FEWEST}",
    )


def instants_of(first_s: float, span: float) -> Floats:
    """When the backlog is read [s]."""
    found: Floats = first_s + span * np.linspace(WARM_UP, 1, PARTS + 1)
    return found


def balance(count: int, span: float, backlog: NDArray[np.int64], *, empties: bool) -> Balance:
    """The balance of ``count`` requests over ``span`` seconds by the ``backlog`` at the instants."""
    offered = (count - 1) / span
    growth, reach = _growth(backlog, span)
    verdict = _verdict(growth, reach, offered, empties)
    return Balance(
        verdict=verdict,
        growth_per_s=growth,
        ci95=(growth - reach, growth + reach),
        offered_per_s=offered,
        reason=_reason(verdict, growth, reach, offered),
    )


def _times(requests: RequestColumns) -> tuple[Floats, Floats]:
    """When requests came and when they left the backlog, each in ascending order; never is infinite."""
    real = latency.ints(requests.status) != REJECTED
    admitted, ended = latency.floats(requests.admitted_s)[real], latency.floats(requests.end_s)[real]
    left = ended if np.isnan(admitted).all() else admitted
    return np.sort(latency.floats(requests.scheduled_s)[real]), np.sort(np.where(np.isnan(left), np.inf, left))


def _growth(backlog: NDArray[np.int64], span: float) -> tuple[float, float]:
    """The growth of the backlog [requests/s] and half of its 95% interval."""
    gains = np.diff(backlog) / (span * (1 - WARM_UP) / PARTS)
    reach = t_quantile(0.975, PARTS - 1) * float(gains.std(ddof=1)) / math.sqrt(PARTS)
    return float(gains.mean()), reach


def _empties(arrived: Floats, left: Floats) -> bool:
    """Whether the backlog keeps coming back to nothing: in 4 of 5 parts of the second half of the arrivals."""
    order = np.arange(len(arrived))
    found_nobody = np.searchsorted(left, arrived, side="right") >= order
    late = np.array_split(found_nobody[len(order) // 2 :], LATE_PARTS)
    return sum(bool(part.any()) for part in late) >= LATE_NEEDED


def _verdict(growth: float, reach: float, offered: float, empties: bool) -> Literal["steady", "growing", "unclear"]:
    if growth + reach <= TOLERANCE * offered or empties:
        return "steady"
    return "growing" if growth - reach > 0 else "unclear"


def _reason(verdict: str, growth: float, reach: float, offered: float) -> str:
    share, error = 100 * growth / offered, 100 * reach / offered
    if verdict == "steady":
        return "the backlog keeps emptying or does not grow"
    if verdict == "growing":
        return f"unstable: the backlog grows by {share:.1f}% (+/- {error:.1f}) of the arrivals, latencies with the run"
    return f"near saturation: the backlog's growth, {share:.1f}% (+/- {error:.1f}) of the arrivals, is not clear from 0"
