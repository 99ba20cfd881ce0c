"""The part of a run in which the load was what it says: found from the run, and told.

Closed loop. From the moment that all streams are busy to the moment that the first has nothing more to send: before and
after, fewer requests share the server. Its sample is the requests that ended within, a stationary stream of departures
(requests that began before the window and ended in it belong to it, those that it cut off do not).

Open loop. From the first arrival, which only starts the clock, to the last. Its sample is the requests that were due
within; all were waited for, so none is missing for being slow. Those at the end had less company than the others: a run
should last many latencies (caveat ``short-run``).

In both, a beginning that is not like the rest is then cut, by MSER-5 on the TTFT and on the TPOT (``mser``), whichever
cuts more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.measure.bench.mser import FEWEST, transient
from servewise.metrics import latency
from servewise.records.columns import COMPLETED, RequestColumns

AFTER_S = 1e-9

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """From ``start_s`` to ``end_s`` of the run; ``rows`` are the requests in it, completed or not.

    ``full_s`` is from when the load was full, ``cut`` how many completed requests MSER-5 then left out. ``settled``:
    a steady state shows; None where the run is too short to tell. ``rule`` says in words how it was found.
    """

    start_s: float
    end_s: float
    full_s: float
    rows: Ints
    cut: int
    settled: bool | None
    rule: str

    @property
    def duration_s(self) -> float:
        """Its length [s]."""
        return max(self.end_s - self.start_s, 0.0)


def closed_window(requests: RequestColumns, streams: int) -> Window:
    """The window of a closed loop of ``streams``."""
    sent, ended = latency.floats(requests.sent_s), latency.floats(requests.end_s)
    left = np.sort(sent[~np.isnan(sent)])
    if len(left) < streams or not len(left):
        return _empty(f"never {streams} streams at once")
    after_last = ended[ended >= left[-1]]
    full, idle = float(left[streams - 1]), float(after_last.min() if len(after_last) else left[-1])
    inside = np.flatnonzero((ended > full) & (ended <= idle))
    inside = inside[np.argsort(ended[inside], kind="stable")]
    cut, settled = _cut(requests, inside)
    start = full if cut == 0 else float(ended[_completed(requests, inside)[cut - 1]])
    rule = "all streams busy until the first has no more to send"
    return _made(start, idle, full, inside[ended[inside] > start] if cut else inside, cut, settled, rule)


def open_window(requests: RequestColumns) -> Window:
    """The window of arrivals that wait for nobody (also of a trace, and of sessions)."""
    due = latency.floats(requests.scheduled_s)
    if not len(due):
        return _empty("no request was due")
    inside = np.lexsort((latency.ints(requests.id), due))
    first, last = float(due[inside[0]]), float(due[inside[-1]])
    cut, settled = _cut(requests, inside)
    opened = first if cut == 0 else float(due[_completed(requests, inside)[cut - 1]])
    start = opened + AFTER_S  # n arrivals span n - 1 gaps, and the first only opens them
    return _made(start, max(last, start), first, inside[due[inside] >= start], cut, settled, "first to last arrival")


def _made(start: float, end: float, full: float, rows: Ints, cut: int, settled: bool | None, rule: str) -> Window:
    if settled is None:
        how = f"{rule}; under {FEWEST} requests, so nothing more was cut"
    elif not settled:
        how = f"{rule}; no steady state shows (MSER-5)"
    elif cut:
        how = f"{rule}; then {cut} requests cut by MSER-5"
    else:
        how = f"{rule}; nothing in its beginning is unlike the rest (MSER-5)"
    return Window(start_s=start, end_s=end, full_s=full, rows=rows, cut=cut, settled=settled, rule=how)


def _empty(rule: str) -> Window:
    none = np.empty(0, np.int64)
    return Window(start_s=0.0, end_s=0.0, full_s=0.0, rows=none, cut=0, settled=None, rule=rule)


def _completed(requests: RequestColumns, rows: Ints) -> Ints:
    found: Ints = rows[latency.ints(requests.status)[rows] == COMPLETED]
    return found


def _cut(requests: RequestColumns, rows: Ints) -> tuple[int, bool | None]:
    """How many of the completed ``rows``, in order, to leave out; whether the rest is steady."""
    whole = _completed(requests, rows)
    if len(whole) < FEWEST:
        return 0, None
    found = [
        transient(series)
        for each in (latency.ttft, latency.tpot)
        if not np.isnan(series := each(requests)[whole]).any()
    ]
    if not all(each.settled for each in found):
        return 0, False
    return max((each.first for each in found), default=0), True
