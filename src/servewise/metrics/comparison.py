"""Two runs side by side: each metric's ratio, how sure it is, and a verdict, and the gates that a script sets."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from servewise.errors import InputError, UnknownName
from servewise.metrics.percentiles import Interval, Percentiles
from servewise.metrics.sample import NAMES
from servewise.metrics.summary import LATENCIES, RATES, RunSummary

Verdict = Literal["better", "worse", "same", "unclear"]
SAME = 0.02  # ratios whose whole interval lies within 2% of 1 are the same for any purpose of serving
METRICS = (*(f"{latency}_{name}" for latency in LATENCIES for name in NAMES), *RATES)
GATE = re.compile(r"\s*([a-z0-9_]+)\s*([<>])\s*([+-]?[0-9.]+)\s*%\s*")
EXAMPLE = "write it like ttft_p95>+10%, output_tokens_per_s<-5%"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of runs a and b: ``ratio`` is b / a with its 95% interval (None: a run has no interval for it).

    ``verdict`` is b's against a: better or worse where the interval leaves out 1, same where it lies within 2% of 1.
    ``paired``: the interval is of the same requests in both runs (``paired``), not of two independent runs.
    """

    metric: str
    a: float
    b: float
    ratio: float
    ci95: Interval | None
    verdict: Verdict
    paired: bool = False

    def to_json(self) -> dict[str, object]:
        """CONTRACT's row of ``compare``."""
        pair = None if self.ci95 is None else list(self.ci95)
        row = {"metric": self.metric, "a": self.a, "b": self.b, "ratio": self.ratio}
        return row | {"ci95": pair, "verdict": self.verdict, "paired": self.paired}


def compare(a: RunSummary, b: RunSummary) -> tuple[Comparison, ...]:
    """Every metric that both runs have."""
    rows = (_row(metric, value_of(a, metric), value_of(b, metric)) for metric in METRICS)
    return tuple(row for row in rows if row is not None)


def judged(row: Comparison, ci95: Interval | None) -> Comparison:
    """``row`` with the interval of a paired comparison, and the verdict that follows."""
    return replace(row, ci95=ci95, verdict=_verdict(row.metric, row.ratio, ci95), paired=True)


def value_of(summary: RunSummary, metric: str) -> tuple[float, Interval | None]:
    """A metric by its name (``ttft_p95``, ``output_tokens_per_s``, ...), with its interval; NaN where it has none."""
    if metric in RATES:
        value = getattr(summary, metric)
        return (math.nan if value is None else float(value)), summary.ci95.get(metric)
    latency, _, name = metric.partition("_")
    found: Percentiles = getattr(summary, latency)
    return float(getattr(found, name)), found.ci95.get(name)


def _row(metric: str, a: tuple[float, Interval | None], b: tuple[float, Interval | None]) -> Comparison | None:
    if math.isnan(a[0]) or math.isnan(b[0]):
        return None
    ratio = b[0] / a[0] if a[0] else (1.0 if b[0] == 0 else math.inf)
    ci95 = ratio_interval(a[0], a[1], b[0], b[1]) if a[1] and b[1] else None
    verdict = "same" if a == b else _verdict(metric, ratio, ci95)
    return Comparison(metric, a[0], b[0], ratio, ci95, verdict)


def ratio_interval(a: float, a_ci95: Interval, b: float, b_ci95: Interval) -> Interval | None:
    """The 95% interval of b / a from theirs, on a logarithmic scale (MOVER, Zou and Donner 2008, equation 6).

    ln r - sqrt(ln(b / b_low)² + ln(a_high / a)²) to ln r + sqrt(ln(b_high / b)² + ln(a / a_low)²); independent runs.
    None where a or b is not positive.
    """
    if a <= 0 or b <= 0:
        return None
    middle = math.log(b / a)
    low = middle - math.hypot(_log_ratio(b, b_ci95[0]), _log_ratio(a_ci95[1], a))
    high = middle + math.hypot(_log_ratio(b_ci95[1], b), _log_ratio(a, a_ci95[0]))
    return math.exp(low), math.exp(high) if high < 700 else math.inf


def _log_ratio(upper: float, lower: float) -> float:
    return math.inf if lower <= 0 or upper <= 0 else math.log(upper / lower)


def _verdict(metric: str, ratio: float, ci95: Interval | None) -> Verdict:
    if ci95 is None:
        return "same" if ratio == 1 else "unclear"
    if ci95[0] >= 1 / (1 + SAME) and ci95[1] <= 1 + SAME:
        return "same"
    if ci95[0] <= 1 <= ci95[1]:
        return "unclear"
    more_is_better = metric in RATES
    return "better" if (ratio > 1) == more_is_better else "worse"


@dataclass(frozen=True, slots=True)
class Gate:
    """Fails where ``metric`` changed from a to b by more (``>``) or less (``<``) than ``change`` (0.1: +10%)."""

    metric: str
    direction: str
    change: float

    def fails(self, rows: Sequence[Comparison]) -> bool:
        """Whether the change is beyond the gate; InputError where the runs do not both have the metric."""
        return self._beyond(self._row(rows).ratio - 1)

    def is_certain(self, rows: Sequence[Comparison]) -> bool:
        """Whether the whole 95% interval of the change lies on the side of the gate that ``fails`` says."""
        row = self._row(rows)
        if row.ci95 is None:
            return False
        return {self._beyond(end - 1) for end in row.ci95} == {self.fails(rows)}

    def _beyond(self, change: float) -> bool:
        return change > self.change if self.direction == ">" else change < self.change

    def _row(self, rows: Sequence[Comparison]) -> Comparison:
        for row in rows:
            if row.metric == self.metric:
                return row
        raise InputError(f"the runs do not both have {self.metric}", where="fail-if")

    def __str__(self) -> str:
        """E.g. ``ttft_p95 > +10%``."""
        return f"{self.metric} {self.direction} {100 * self.change:+g}%"


def parse_gates(text: str) -> tuple[Gate, ...]:
    """The gates written like ``ttft_p95>+10%, output_tokens_per_s<-5%``.

    >>> [str(gate) for gate in parse_gates("ttft_p95>+10%")]
    ['ttft_p95 > +10%']
    """
    parts = [part for part in re.split(r"[,;]", text) if part.strip()]
    if not parts:
        raise InputError("a gate needs at least one condition", where="fail-if", hint=EXAMPLE)
    return tuple(_gate(part) for part in parts)


def _gate(text: str) -> Gate:
    match = GATE.fullmatch(text.lower())
    if match is None:
        raise InputError(f"cannot read {text.strip()[:80]!r}", where="fail-if", hint=EXAMPLE)
    metric, direction, number = match.groups()
    if metric not in METRICS:
        raise UnknownName("metric", metric[:40], METRICS, where="fail-if", hint=f"e.g. {', '.join(METRICS[:5])}")
    try:
        change = float(number) / 100
    except ValueError as error:
        raise InputError(f"cannot read {text.strip()[:80]!r}", where="fail-if", hint=EXAMPLE) from error
    if not -1 <= change <= 1e6:
        raise InputError(f"a change of {number}% cannot be", where="fail-if", hint=EXAMPLE)
    return Gate(metric, direction, change)
