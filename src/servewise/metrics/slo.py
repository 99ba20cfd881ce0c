"""A service-level objective: bounds on percentiles of latencies, and what a run or a request makes of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Protocol

from servewise.errors import InputError, UnknownName
from servewise.metrics.percentiles import Percentiles
from servewise.units import format_seconds

METRICS = ("ttft", "tpot", "itl", "e2e")
PERCENTILES = ("mean", "p50", "p90", "p95", "p99")
UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6}
BOUND = re.compile(r"\s*([a-z0-9]+)_([a-z0-9.]+)\s*(<=|≤|<)\s*([0-9.eE+-]+)\s*([a-zµμ]+)\s*")
EXAMPLE = "write it like ttft_p95<=1s, tpot_p95<=50ms"


class Latencies(Protocol):
    """What an SLO looks at: the latencies of a ``RunSummary``."""

    @property
    def ttft(self) -> Percentiles:
        """Time to first token."""
        ...

    @property
    def tpot(self) -> Percentiles:
        """Time per output token."""
        ...

    @property
    def itl(self) -> Percentiles:
        """Inter-token latency."""
        ...

    @property
    def e2e(self) -> Percentiles:
        """End-to-end latency."""
        ...

    @property
    def completed(self) -> int:
        """Completed requests."""
        ...


@dataclass(frozen=True, slots=True)
class Bound:
    """``metric`` (ttft, tpot, itl, e2e) at ``percentile`` (mean, p50 .. p99) must be at most ``limit_s`` [s]."""

    metric: str
    percentile: str
    limit_s: float

    def value(self, summary: Latencies) -> float:
        """What ``summary`` has for it [s]; NaN where no request gave one."""
        found: Percentiles = getattr(summary, self.metric)
        return float(getattr(found, self.percentile))

    def __str__(self) -> str:
        """E.g. ``ttft_p95 <= 1.00 s``."""
        return f"{self.metric}_{self.percentile} <= {format_seconds(self.limit_s)}"


@dataclass(frozen=True, slots=True)
class Violation:
    """A bound that does not hold: ``value_s`` is ``factor`` times its limit (NaN: nothing was measured)."""

    bound: Bound
    value_s: float

    @property
    def factor(self) -> float:
        """Value over limit."""
        return self.value_s / self.bound.limit_s

    def __str__(self) -> str:
        """E.g. ``ttft_p95 is 2.00 s, 2.00 x its limit of 1.00 s``."""
        name = f"{self.bound.metric}_{self.bound.percentile}"
        if math.isnan(self.value_s):
            return f"{name} is unknown: no completed request has one"
        limit = format_seconds(self.bound.limit_s)
        return f"{name} is {format_seconds(self.value_s)}, {self.factor:.2f} x its limit of {limit}"


@dataclass(frozen=True, slots=True)
class Slo:
    """All bounds must hold."""

    bounds: tuple[Bound, ...]

    def violations(self, summary: Latencies) -> tuple[Violation, ...]:
        """The bounds that do not hold, worst first. TPOT and ITL of a run of one-token answers are no violation."""
        broken = [Violation(each, each.value(summary)) for each in self.bounds if not _holds(each, summary)]
        return tuple(sorted(broken, key=lambda each: -math.inf if math.isnan(each.factor) else -each.factor))

    def holds(self, summary: Latencies) -> bool:
        """Whether every bound holds."""
        return not self.violations(summary)

    def limit_s(self, metric: str) -> float:
        """What one request must keep of ``metric`` [s]: the loosest of its bounds (the tighter ones let some pass)."""
        return max((each.limit_s for each in self.bounds if each.metric == metric), default=math.inf)

    def __str__(self) -> str:
        """E.g. ``ttft_p95 <= 1.00 s, tpot_p95 <= 50.0 ms``."""
        return ", ".join(str(each) for each in self.bounds)


def _holds(bound: Bound, summary: Latencies) -> bool:
    value = bound.value(summary)
    if math.isnan(value):
        return bound.metric in ("tpot", "itl") and summary.completed > 0
    return value <= bound.limit_s


def parse_slo(text: str) -> Slo:
    """The SLO written like ``ttft_p95<=1s, tpot_p95<=50ms`` (``<`` and ``≤`` mean the same; units s, ms, us).

    Raises InputError for a bound that is not of that form, UnknownName for a metric or percentile that is not kept.

    >>> str(parse_slo("ttft_p95<=1s, tpot_p95<50ms"))
    'ttft_p95 <= 1.00 s, tpot_p95 <= 50.0 ms'
    """
    parts = [part for part in re.split(r"[,;]", text) if part.strip()]
    if not parts:
        raise InputError("an SLO needs at least one bound", where="slo", hint=EXAMPLE)
    bounds = tuple(_bound(part) for part in parts)
    if len({(each.metric, each.percentile) for each in bounds}) < len(bounds):
        raise InputError(f"{text.strip()[:80]!r} bounds one percentile twice", where="slo", hint="keep one of them")
    return Slo(bounds)


def _bound(text: str) -> Bound:
    match = BOUND.fullmatch(text.lower())
    if match is None:
        raise InputError(f"cannot read the bound {text.strip()[:80]!r}", where="slo", hint=EXAMPLE)
    metric, percentile, _, number, unit = match.groups()
    if metric not in METRICS:
        raise UnknownName("latency", metric, METRICS, where="slo", hint=f"one of {', '.join(METRICS)}")
    if percentile not in PERCENTILES:
        raise UnknownName("percentile", percentile, PERCENTILES, where="slo", hint=f"one of {', '.join(PERCENTILES)}")
    if unit not in UNITS_S:
        raise UnknownName("unit of time", unit, UNITS_S, where="slo", hint="one of s, ms, us")
    return Bound(metric, percentile, _seconds(number, unit, text))


def _seconds(number: str, unit: str, text: str) -> float:
    try:
        limit = float(number) * UNITS_S[unit]
    except ValueError:
        limit = math.nan
    if not 0 < limit < 1e9:
        raise InputError(f"the limit of {text.strip()[:80]!r} must be a time above 0", where="slo", hint=EXAMPLE)
    return limit
