"""Percentiles with their intervals, as every latency leaves the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Mean and percentiles of a sample of ``n``; ``ci95`` holds a 95% interval per name (mean, p50, p90, p95, p99).

    The values are in the unit of the sample (seconds for latencies).
    """

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    n: int
    ci95: Mapping[str, Interval] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """CONTRACT's ``{"mean", "p50", "p90", "p95", "p99", "ci95_p50", "n"}``, with every known interval."""
        plain: dict[str, object] = {
            "mean": self.mean,
            "p50": self.p50,
            "p90": self.p90,
            "p95": self.p95,
            "p99": self.p99,
        }
        return plain | {f"ci95_{name}": list(pair) for name, pair in self.ci95.items()} | {"n": self.n}
