"""A claimed speed-up against what two runs show."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from servewise.errors import InputError, UnknownName
from servewise.metrics.comparison import METRICS, Comparison
from servewise.metrics.percentiles import Interval
from servewise.metrics.summary import RATES

TOLERANCE = 0.05
CLAIM = re.compile(r"\s*([0-9.]+)\s*[x×]?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """That b is at least ``factor`` times as good as a in ``metric``: a rate so much higher, a latency so much lower.

    ``tolerance`` is how much less still counts (0.05: a claim of 2.0x is kept by 1.9x).
    """

    factor: float
    metric: str
    tolerance: float = TOLERANCE

    @property
    def least(self) -> float:
        """The least speed-up that keeps the claim."""
        return self.factor * (1 - self.tolerance)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the runs say of a claim: the ``speedup`` that they show, its 95% interval, and the verdict.

    Reproduced where the whole interval keeps the claim, refuted where none of it does, undecided where it reaches over
    the line or is not known.
    """

    claim: Claim
    speedup: float
    ci95: Interval | None
    verdict: Literal["reproduced", "refuted", "undecided"]

    def to_json(self) -> dict[str, object]:
        """As plain JSON."""
        return {
            "metric": self.claim.metric,
            "claimed": self.claim.factor,
            "tolerance": self.claim.tolerance,
            "speedup": self.speedup,
            "ci95": None if self.ci95 is None else list(self.ci95),
            "verdict": self.verdict,
        }


def parse_claim(text: str, metric: str, tolerance: float = TOLERANCE) -> Claim:
    """The claim written like ``2.0x``.

    >>> parse_claim("2.0x", "output_tokens_per_s").least
    1.9
    """
    if metric not in METRICS:
        raise UnknownName("metric", metric[:40], METRICS, where="metric", hint=f"e.g. {', '.join(METRICS[:5])}")
    match = CLAIM.fullmatch(text)
    try:
        factor = float(match[1]) if match else math.nan
    except ValueError:
        factor = math.nan
    if not 0 < factor < 1e6:
        raise InputError(f"cannot read {text.strip()[:40]!r}", where="claim", hint="write a speed-up like 2.0x")
    if not 0 <= tolerance < 1:
        raise InputError(f"{tolerance:g} is no share below 1", where="tolerance", hint="0.05 is 5%")
    return Claim(factor=factor, metric=metric, tolerance=tolerance)


def judge(claim: Claim, rows: Sequence[Comparison]) -> Judgement:
    """What ``rows`` say of ``claim``; InputError where the runs do not both have its metric."""
    row = next((each for each in rows if each.metric == claim.metric), None)
    if row is None:
        raise InputError(f"the runs do not both have {claim.metric}", where="claim")
    speedup, ci95 = row.ratio, row.ci95
    if claim.metric not in RATES:
        speedup = 1 / row.ratio if row.ratio else math.inf
        ci95 = (_inverse(row.ci95[1]), _inverse(row.ci95[0])) if row.ci95 else None
    return Judgement(claim, speedup, ci95, _verdict(claim.least, ci95))


def _inverse(value: float) -> float:
    return 1 / value if value > 0 else math.inf


def _verdict(least: float, ci95: Interval | None) -> Literal["reproduced", "refuted", "undecided"]:
    if ci95 is None:
        return "undecided"
    if ci95[0] >= least:
        return "reproduced"
    return "refuted" if ci95[1] < least else "undecided"
