"""Where a server saturates: the rate of completions when requests are always waiting.

A queue is stable only below it: above, it grows for as long as the run lasts, and so does every percentile. Measured on
a backlog (all requests there from the start), between a fifth and four fifths of the completions, so that neither the
filling nor the emptying of the slots counts; cut into segments for an interval (batch means, Schmeiser 1982).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, hypot, isnan

from servewise.metrics.percentiles import Interval
from servewise.metrics.replicas import interval
from servewise.plan.server import Server
from servewise.records.columns import COMPLETED, RequestColumns
from servewise.workload.request import Request

FIRST, LAST = 0.2, 0.8
SEGMENTS = 10
FILLINGS = 20  # times that a backlog fills the slots


@dataclass(frozen=True, slots=True)
class Knee:
    """The saturation rate [requests/s] as an interval."""

    low_per_s: float
    high_per_s: float

    @property
    def middle_per_s(self) -> float:
        """Its middle."""
        return (self.low_per_s + self.high_per_s) / 2


def saturation(server: Server, requests: Sequence[Request], fillings: int = FILLINGS) -> Knee:
    """The knee of ``server`` for requests of these lengths in this order; zeros where none completes."""
    run = server.run(backlog(requests, fillings * held_at_once(server, requests)))
    return knee_of(run.requests)


def held_at_once(server: Server, requests: Sequence[Request]) -> int:
    """How many of these requests fill the server: its slots, or its pool with each half-way through its answer."""
    slots = server.policy.slots
    if server.blocks is None or not requests:
        return slots
    tokens = sum(each.prompt_tokens + each.output_tokens / 2 for each in requests) / len(requests)
    return max(1, min(slots, ceil(server.blocks * server.block_tokens / tokens)))


def backlog(requests: Sequence[Request], least: int) -> list[Request]:
    """The requests, all there at the start; repeated until there are ``least``."""
    times = max(1, ceil(least / max(len(requests), 1)))
    return [each._replace(serial=serial, arrival_s=0.0) for serial, each in enumerate(list(requests) * times)]


def knee_of(columns: RequestColumns) -> Knee:
    """The knee from the records of a backlog: completions per second over segments of equal time."""
    ends = [end for end, status in zip(columns.end_s, columns.status, strict=True) if status == COMPLETED]
    first, last = (ends[int(share * (len(ends) - 1))] for share in (FIRST, LAST)) if ends else (0.0, 0.0)
    if last <= first:
        rate = len(ends) / ends[-1] if ends and ends[-1] > 0 else 0.0
        return Knee(rate, rate)
    marks = [first + (last - first) * part / SEGMENTS for part in range(SEGMENTS)] + [last]
    ended = [bisect_right(ends, mark) for mark in marks]
    seconds = (last - first) / SEGMENTS
    return _around((ended[-1] - ended[0]) / (last - first), interval([(b - a) / seconds for a, b in pairwise(ended)]))


def between(nominal: Knee, *others: Knee) -> Knee:
    """The nominal knee, as wide as its own interval and the distance of the ``others`` (slow and fast clocks) say."""
    centre = nominal.middle_per_s
    middles = [each.middle_per_s for each in (nominal, *others)]
    below = hypot(centre - nominal.low_per_s, centre - min(middles))
    above = hypot(nominal.high_per_s - centre, max(middles) - centre)
    return Knee(max(0.0, centre - below), centre + above)


def _around(rate: float, found: Interval | None) -> Knee:
    reach = (found[1] - found[0]) / 2 if found else 0.0
    reach = 0.0 if isnan(reach) else reach
    return Knee(max(rate - reach, 0.0), rate + reach)
