"""How far a candidate's highest rate moves when an input is 10% off."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servewise.metrics.slo import Slo
from servewise.plan.candidates import Candidate
from servewise.plan.search import highest_rate
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.plan.weighing import server_of


@dataclass(frozen=True, slots=True)
class Change:
    """``input`` (bandwidth, peak or lengths) taken ``factor`` times as large."""

    input: str
    factor: float

    @property
    def words(self) -> str:
        """E.g. ``-10%``."""
        return f"{self.factor - 1:+.0%}"


CHANGES = tuple(Change(name, factor) for name in ("bandwidth", "peak", "lengths") for factor in (0.9, 1.1))


@dataclass(frozen=True, slots=True)
class Moved:
    """The highest rate with the change over that without it, both on the same traffic; 0: the SLO does not hold."""

    change: Change
    ratio: float


def moved(
    candidate: Candidate,
    change: Change,
    before_per_s: float,
    traffic: Traffic,
    slo: Slo,
    estimator: str | None,
    hash_block_tokens: int | None,
) -> Moved:
    """How far the highest rate of ``candidate`` moves with ``change`` from ``before_per_s``, found on ``traffic``."""
    other = traffic.longer(change.factor) if change.input == "lengths" else traffic
    server = server_of(changed(candidate, change), estimator, hash_block_tokens)
    if not isinstance(server, Server):
        return Moved(change, 0.0)
    guess = before_per_s / change.factor if change.input == "lengths" else before_per_s * change.factor
    return Moved(change, highest_rate(server, other, slo, guess).rate_per_s / before_per_s)


def changed(candidate: Candidate, change: Change) -> Candidate:
    """``candidate`` on an accelerator with that change; a change of lengths leaves it as it is."""
    known = candidate.deployment.accelerator
    if change.input == "bandwidth":
        other = known.with_overrides(bandwidth=known.bandwidth_bytes_per_s * change.factor)
    elif change.input == "peak":
        peaks = {name: replace(each, value=each.value * change.factor) for name, each in known.peaks.items()}
        other = replace(known, peaks=peaks)
    else:
        return candidate
    return replace(candidate, deployment=replace(candidate.deployment, accelerator=other))
