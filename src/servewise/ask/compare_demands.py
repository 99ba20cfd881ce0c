"""What a comparison must show: gates that B keeps, a speed-up that was claimed."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.errors import InputError
from servewise.metrics.claim import TOLERANCE, Claim, parse_claim
from servewise.metrics.comparison import Gate, parse_gates

DEFAULT_METRIC = "output_tokens_per_s"


@dataclass(frozen=True, slots=True)
class Demands:
    """Gates, none by default, and a claim, None: nothing was claimed."""

    gates: tuple[Gate, ...] = ()
    claim: Claim | None = None


def demands_of(fail_if: str | None, claim: str | None, metric: str, tolerance: float) -> Demands:
    """What these texts demand; InputError for one that cannot be read, and for a claim's options without a claim."""
    if claim is None and (metric != DEFAULT_METRIC or tolerance != TOLERANCE):
        where = "metric" if metric != DEFAULT_METRIC else "tolerance"
        raise InputError("is about a claim", where=where, hint="give --claim, e.g. 2.0x")
    gates = parse_gates(fail_if) if fail_if is not None else ()
    return Demands(tuple(gates), parse_claim(claim, metric, tolerance) if claim is not None else None)
