"""What a server said of itself over a run, once a second, as columns on the client's clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from servewise.measure.scrape.meanings import COUNTERS, GAUGES, QUANTITIES

MOST_SAMPLES = 4_096  # then every second one is dropped: a day of a run takes no more room than an hour


@dataclass(slots=True)
class Timeline:
    """``time_s`` counts from the run's start; ``columns`` holds each quantity's value at those times (NaN: not told).

    ``engine`` names whose metrics they are, ``failures`` counts the times that none came.
    """

    engine: str = ""
    time_s: list[float] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in QUANTITIES})
    failures: int = 0
    stride: int = 1
    _skipped: int = 0

    def add(self, time_s: float, values: Mapping[str, float]) -> None:
        """One more sample; of a long run only every ``stride``-th is kept."""
        self._skipped += 1
        if self._skipped < self.stride:
            return
        self._skipped = 0
        self.time_s.append(time_s)
        for name, column in self.columns.items():
            column.append(values.get(name, math.nan))
        if len(self.time_s) >= MOST_SAMPLES:
            self._thin()

    def _thin(self) -> None:
        self.stride *= 2
        self.time_s = self.time_s[1::2]
        self.columns = {name: column[1::2] for name, column in self.columns.items()}

    def summary(self, start_s: float, end_s: float) -> dict[str, Any]:
        """Gauges at their mean and most, counters by their growth, over the samples from ``start_s`` to ``end_s``.

        ``prefix_hit_share`` is hits over queries of that time. Quantities that the server does not tell are left out.
        """
        kept = [place for place, time in enumerate(self.time_s) if start_s <= time <= end_s]
        gauges = {name: _gauge([self.columns[name][place] for place in kept]) for name in GAUGES}
        growth = {name: _growth([self.columns[name][place] for place in kept]) for name in COUNTERS}
        told = {name: value for name, value in (gauges | growth).items() if value is not None}
        queries, hits = growth["prefix_queries_tokens"], growth["prefix_hits_tokens"]
        share = {"prefix_hit_share": hits / queries} if queries and hits is not None else {}
        return {"engine": self.engine, "samples": len(kept), "failures": self.failures} | told | share

    def to_json(self) -> dict[str, Any]:
        """The columns as plain JSON, null where nothing was told; columns without a value are left out."""
        told = {
            name: [None if math.isnan(value) else value for value in column]
            for name, column in self.columns.items()
            if not all(map(math.isnan, column))
        }
        return {"engine": self.engine, "failures": self.failures, "time_s": list(self.time_s)} | told

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> Timeline:
        """What ``to_json`` gave, as columns again."""
        times = [float(each) for each in told["time_s"]]
        columns = {name: _column(told.get(name), len(times)) for name in QUANTITIES}
        return cls(engine=told["engine"], time_s=times, columns=columns, failures=told["failures"])


def _column(values: Sequence[float | None] | None, count: int) -> list[float]:
    return [math.nan if value is None else float(value) for value in values or [None] * count]


def _gauge(values: list[float]) -> dict[str, float] | None:
    known = [value for value in values if not math.isnan(value)]
    return {"mean": math.fsum(known) / len(known), "most": max(known)} if known else None


def _growth(values: list[float]) -> float | None:
    """Last minus first; a counter that fell was set back (the server began anew) and counts from there."""
    known = [value for value in values if not math.isnan(value)]
    if len(known) < 2:
        return None
    return math.fsum(b - a if b >= a else b for a, b in pairwise(known))
