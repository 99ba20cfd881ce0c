"""Where a request's time went: five parts that add up to its end-to-end latency.

- queue: from its schedule to its first admission;
- prefill: its prompt is being computed, recomputation after a preemption included;
- decode: what remains, from each first token after a prompt to the next preemption or the end (with what a static batch
  makes it wait for its neighbours, and a server's time outside of steps);
- preempted: from each preemption to the admission after it;
- transfer: from the end of its prefill to its admission at a decode server.

Known where the simulator wrote the record; a client sees none of it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.metrics.latency import e2e, floats
from servewise.records.columns import RequestColumns
from servewise.records.selection import recorded

Floats = NDArray[np.float64]
NAMES = ("queue_s", "prefill_s", "decode_s", "preempted_s", "transfer_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Mean seconds of the completed requests in each part; their sum is the mean end-to-end latency."""

    queue_s: float
    prefill_s: float
    decode_s: float
    preempted_s: float
    transfer_s: float

    def to_json(self) -> dict[str, float]:
        """By name."""
        return asdict(self)


def phases(requests: RequestColumns) -> dict[str, Floats] | None:
    """The parts of every row [s], by name; None where they were not recorded."""
    if not len(requests) or "prefill_s" not in recorded(requests):
        return None
    queue = floats(requests.admitted_s) - floats(requests.scheduled_s)
    away = floats(requests.preempted_s), floats(requests.transfer_s)
    prefill = floats(requests.prefill_s)
    decode = e2e(requests) - queue - prefill - away[0] - away[1]
    return dict(zip(NAMES, (queue, prefill, decode, *away), strict=True))


def mean_phases(requests: RequestColumns, rows: NDArray[np.int64]) -> Phases | None:
    """The means over ``rows``; None where the parts were not recorded or there are no rows."""
    found = phases(requests) if len(rows) else None
    return None if found is None else Phases(**{name: float(column[rows].mean()) for name, column in found.items()})


def pooled(means: list[tuple[Phases, int]]) -> Phases | None:
    """Means of several runs as one, each with its number of requests."""
    total = sum(count for _, count in means)
    if not total:
        return None
    return Phases(**{name: sum(getattr(each, name) * count for each, count in means) / total for name in NAMES})
