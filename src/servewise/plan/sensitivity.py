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
    candidate: Candidate, change: Change, traffic: Traffic, slo: Slo, estimator: str, hash_block_tokens: int | None
) -> Moved:
    """How far the highest rate of ``candidate`` moves with ``change``."""
    before = _rate(candidate, traffic, slo, estimator, hash_block_tokens)
    other = traffic.longer(change.factor) if change.input == "lengths" else traffic
    after = _rate(changed(candidate, change), other, slo, estimator, hash_block_tokens)
    return Moved(change, after / before if before else 0.0)


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


def _rate(candidate: Candidate, traffic: Traffic, slo: Slo, estimator: str, hash_block_tokens: int | None) -> float:
    server = server_of(candidate, estimator, hash_block_tokens)
    return highest_rate(server, traffic, slo).rate_per_s if isinstance(server, Server) else 0.0
