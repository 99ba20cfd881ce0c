"""A service-level objective: bounds on percentiles of latencies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """``metric`` (ttft, tpot, itl, e2e) at ``percentile`` (mean, p50 .. p99) must be at most ``limit_s`` [s]."""

    metric: str
    percentile: str
    limit_s: float


@dataclass(frozen=True, slots=True)
class Slo:
    """All bounds must hold."""

    bounds: tuple[Bound, ...]


def parse_slo(text: str) -> Slo:
    """The SLO written like ``ttft_p95<=1s, tpot_p95<=50ms``."""
    raise NotImplementedError
