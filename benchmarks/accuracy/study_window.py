"""From when does the study's dynamic batching count its window of 20 steps?

Question: the study says "also start after a time window" and no more. Which convention gives its dynamic rows?

Method: each convention in a plain loop, 250 runs of 1,500 requests at 0.01, 0.02 and 0.03 a step (below saturation,
where a run's length does not matter); the study's nine figures of a rate (p50, p95 and utilisation of the three
policies) against the runs' means and covariance, with the study's rounding: d² is chi-square with 9 degrees of freedom
a rate for the right convention.

Run: python -m benchmarks.accuracy.study_window (twenty seconds)
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.record import save, table
from servewise.study.agreement import last_place, value
from servewise.study.policy_runs import REQUESTS, arrivals
from servewise.study.published import BATCHING, SLOTS, WINDOW_STEPS

Floats = NDArray[np.float64]
RATES, SEEDS = (0.01, 0.02, 0.03), 250


@dataclass(frozen=True)
class Moment:
    """What a convention may look at: arrivals from the oldest waiting request on, when the server is free."""

    waiting: Floats
    free: float
    last_start: float


Convention = Callable[[Moment], float]


def since_arrival(at: Moment) -> float:
    """The oldest request has waited for the window (running batch or not)."""
    return float(at.waiting[0] + WINDOW_STEPS)


def since_free(at: Moment) -> float:
    """The window starts when the server is free and somebody waits."""
    return max(float(at.waiting[0]), at.free) + WINDOW_STEPS


def since_start(at: Moment) -> float:
    """The window starts with the batch before."""
    return max(float(at.waiting[0]), at.last_start + WINDOW_STEPS)


def on_the_tick(at: Moment) -> float:
    """Batches start at multiples of the window."""
    return math.ceil(max(float(at.waiting[0]), at.free) / WINDOW_STEPS) * WINDOW_STEPS


def since_last_arrival(at: Moment) -> float:
    """Nobody has come for a window."""
    last = at.waiting[0]
    for arrival in at.waiting[1:SLOTS]:
        if arrival > max(last + WINDOW_STEPS, at.free):
            break
        last = arrival
    return float(last + WINDOW_STEPS)


def never(at: Moment) -> float:
    """Static batching: full, or nobody else will come."""
    return math.inf if len(at.waiting) > SLOTS else float(at.waiting[-1])


CONVENTIONS: dict[str, Convention] = {
    "since the oldest request came (servewise)": since_arrival,
    "since the server is free": since_free,
    "since the batch before started": since_start,
    "at multiples of the window": on_the_tick,
    "since the last request came": since_last_arrival,
}


def batchwise(arrived: Floats, lengths: Floats, convention: Convention) -> tuple[float, float, float]:
    """p50, p95 and utilisation of batches that are released whole."""
    first, free, last, active, busy = 0, 0.0, -math.inf, 0.0, 0.0
    latency = np.empty(len(arrived))
    while first < len(arrived):
        full = arrived[first + SLOTS - 1] if first + SLOTS <= len(arrived) else math.inf
        last = max(free, min(convention(Moment(arrived[first:], free, last)), full))
        end = first + int(np.searchsorted(arrived[first : first + SLOTS], last, side="right"))
        longest = lengths[first:end].max()
        free = last + longest
        latency[first:end] = free - arrived[first:end]
        active, busy, first = active + lengths[first:end].sum(), busy + longest, end
    return (*np.percentile(latency, (50, 95)).tolist(), active / (SLOTS * busy))


def continuous(arrived: Floats, lengths: Floats) -> tuple[float, float, float]:
    """The same of requests that take the first free slot."""
    free, spans, latency = [0.0] * SLOTS, [], np.empty(len(arrived))
    for place, (arrival, length) in enumerate(zip(arrived.tolist(), lengths.tolist(), strict=True)):
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + length)
        spans.append((start, start + length))
        latency[place] = start + length - arrival
    busy, reached = 0.0, 0.0
    for start, end in sorted(spans):
        busy, reached = busy + max(0.0, end - max(start, reached)), max(reached, end)
    return (*np.percentile(latency, (50, 95)).tolist(), lengths.sum() / (SLOTS * busy))


def run(rate: float, seed: int, convention: Convention) -> list[float]:
    """The nine figures of one run at ``rate``."""
    requests = arrivals(rate, seed, REQUESTS)
    arrived = np.array([each.arrival_s for each in requests])
    lengths = np.array([float(each.output_tokens) for each in requests])
    static, dynamic = (batchwise(arrived, lengths, each) for each in (never, convention))
    return [*static, *dynamic, *continuous(arrived, lengths)]


def distance(rate: float, convention: Convention) -> tuple[float, list[float]]:
    """d² of the study's nine figures, and the z of its three dynamic ones."""
    runs = np.array([run(rate, seed, convention) for seed in range(SEEDS)])
    printed = [text for policy in ("static", "dynamic", "continuous") for text in BATCHING[rate][policy]]
    rounding = np.array([last_place(text) ** 2 / 12 for text in printed])
    off = np.array([value(text) for text in printed]) - runs.mean(0)
    spread = np.cov(runs.T) + np.diag(rounding)
    return float(off @ np.linalg.solve(spread, off)), (off / np.sqrt(np.diag(spread)))[3:6].tolist()


def main() -> None:
    """Print the table and keep it."""
    rows = []
    for name, convention in CONVENTIONS.items():
        found = [distance(rate, convention) for rate in RATES]
        total = sum(d2 for d2, _ in found)
        zs = ("/".join(f"{z:+.1f}" for z in each) for _, each in found)
        rows.append((name, *(f"{d2:.1f}" for d2, _ in found), total, float(stats.chi2.sf(total, 9 * len(RATES))), *zs))
    header = ("window counts", *(f"d² {rate}" for rate in RATES), "sum", "p", *(f"z at {rate}" for rate in RATES))
    table(header, rows)
    save("study_window", {"header": list(header), "rows": [list(row) for row in rows], "runs": SEEDS})


if __name__ == "__main__":
    main()
