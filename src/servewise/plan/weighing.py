"""One candidate weighed: it fits or not, meets the SLO alone or not, and up to which rate it keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.caveats import Caveat
from servewise.deployment.capacity import DoesNotFit, kv_capacity
from servewise.errors import InputError
from servewise.metrics.slo import Slo, Violation
from servewise.metrics.summary import RunSummary
from servewise.plan.binding import Binding, binding_of
from servewise.plan.bounds import least_violations
from servewise.plan.candidates import Candidate
from servewise.plan.clock import clock_for
from servewise.plan.saturation import Knee
from servewise.plan.search import PRECISION, highest_rate
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.steptime.estimator import Estimator
from servewise.steptime.shape import prefill_shape
from servewise.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A candidate that cannot do it. ``miss`` is the factor over the SLO's limit, where it is the SLO that fails."""

    candidate: Candidate
    why: str
    violation: Violation | None = None
    caveats: tuple[Caveat, ...] = ()

    @property
    def miss(self) -> float | None:
        """How many times over its limit, None where it does not even fit."""
        return None if self.violation is None else self.violation.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A candidate that keeps the SLO up to ``rate_per_s``; ``whole`` says whether the whole traffic was run.

    ``stretch_rate_per_s`` is what it reached on the typical stretch. ``summary`` and ``binding`` are of the run at
    ``rate_per_s``; ``runs`` counts the simulations that it took.
    """

    candidate: Candidate
    rate_per_s: float
    stretch_rate_per_s: float
    summary: RunSummary
    knee: Knee
    binding: Binding
    runs: int
    whole: bool
    caveats: tuple[Caveat, ...] = ()


def server_of(
    candidate: Candidate, estimator: str | None, hash_block_tokens: int | None, clock: Estimator | None = None
) -> Server | DoesNotFit:
    """The candidate as a server, or why it does not fit."""
    capacity = kv_capacity(candidate.deployment)
    if isinstance(capacity, DoesNotFit):
        return capacity
    return Server(
        policy=candidate.policy,
        estimator=clock or clock_for(candidate.deployment, estimator),
        blocks=capacity.blocks,
        block_tokens=capacity.block_tokens,
        hash_block_tokens=hash_block_tokens,
        deployment=candidate.deployment,
    )


def _mostly_links(server: Server, traffic: Traffic) -> str:
    """A clause where the links between accelerators take most of a mean prompt's step."""
    mean = max(1, sum(each.prompt_tokens for each in traffic.requests) // len(traffic.requests))
    step = server.estimator.step(prefill_shape(1, mean, server.estimator.window_tokens))
    share = step.communication_s / step.step_s if step.step_s else 0.0
    return f" (the links between accelerators take {share:.0%} of a prompt's step)" if share > 0.5 else ""


def admitted(
    candidate: Candidate, traffic: Traffic, slo: Slo, estimator: str | None, hash_block_tokens: int | None
) -> Server | Rejected:
    """The candidate as a server, unless its memory or the physics of its SLO rule it out; nothing is simulated."""
    unsplit = why_not_split(candidate)
    if unsplit:
        return Rejected(candidate=candidate, why=unsplit)
    try:
        server = server_of(candidate, estimator, hash_block_tokens)
    except InputError as error:
        return Rejected(candidate=candidate, why=str(error))
    if not isinstance(server, Server):
        short = format_bytes(server.short_by_bytes)
        return Rejected(candidate=candidate, why=f"does not fit: {short} short on each accelerator")
    held = (server.blocks or 0) * server.block_tokens
    if traffic.longest_tokens > held:
        why = f"its pool of {held:,} KV tokens does not hold the longest request of {traffic.longest_tokens:,}"
        return Rejected(candidate=candidate, why=why)
    broken = least_violations(server, traffic, slo)
    if broken:
        why = f"even with each request alone, {broken[0]}{_mostly_links(server, traffic)}"
        return Rejected(candidate=candidate, why=why, violation=broken[0])
    return server


def why_not_split(candidate: Candidate) -> str:
    """Why the model cannot be split so; empty where it can."""
    deployment, tensor = candidate.deployment, candidate.deployment.parallelism.tensor
    if candidate.accelerators > 1 and deployment.accelerator.link is None:
        return f"no link between two {deployment.accelerator.title} is known"
    uneven = [each.heads for _, each in deployment.model.attentions() if each.heads % tensor]
    return f"{uneven[0]} query heads do not divide over TP{tensor}" if uneven else ""


def weigh(
    candidate: Candidate,
    server: Server,
    traffic: Traffic,
    slo: Slo,
    *,
    guess_per_s: float | None = None,
    precision: float = PRECISION,
    stretch_rate_per_s: float | None = None,
    whole: bool,
) -> Weighed | Rejected:
    """The highest rate at which ``server`` keeps ``slo`` on ``traffic``, or that there is none."""
    found = highest_rate(server, traffic, slo, guess_per_s, precision)
    if found.rate_per_s <= 0:
        broken = slo.violations(found.summary)
        why = f"not even at {found.lowest_per_s:.3g} requests/s: {broken[0]}" if broken else "no request completes"
        return Rejected(candidate=candidate, why=why, violation=broken[0] if broken else None)
    return Weighed(
        candidate=candidate,
        rate_per_s=found.rate_per_s,
        stretch_rate_per_s=found.rate_per_s if stretch_rate_per_s is None else stretch_rate_per_s,
        summary=found.summary,
        knee=found.knee,
        binding=binding_of(server, found.run),
        runs=found.runs,
        whole=whole,
        caveats=server.estimator.caveats,
    )
