"""One candidate weighed: it fits or not, meets the SLO alone or not, and up to which rate it keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence
from servewise.caveats import Caveat
from servewise.deployment.capacity import DoesNotFit, kv_capacity
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.metrics.slo import Slo, Violation
from servewise.metrics.summary import RunSummary
from servewise.plan.binding import Binding, binding_of
from servewise.plan.bounds import broken_by, least_values
from servewise.plan.candidates import Candidate
from servewise.plan.clock import clock_for
from servewise.plan.lengths import Lengths
from servewise.plan.saturation import Knee
from servewise.plan.search import PRECISION, Behind, highest_above
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.steptime.estimator import Estimator
from servewise.steptime.shape import prefill_shape
from servewise.units import format_bytes


class Reason(StrEnum):
    """Why a candidate is out; the last two are known from a simulation alone: of the stretch, and of all requests."""

    SPLIT = "cannot_be_split"
    MEMORY = "does_not_fit"
    REFUSES = "refuses_requests"
    ALONE = "slo_with_each_request_alone"
    RATE = "rate_beyond_its_throughput"
    SIMULATED = "slo_simulated"
    WHOLE = "slo_simulated_on_all_requests"

    @property
    def simulated(self) -> bool:
        """Whether a simulation showed it."""
        return self in (Reason.SIMULATED, Reason.WHOLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A candidate that cannot do it. ``miss`` is the factor over the SLO's limit, where it is the SLO that fails.

    ``runs`` counts the simulations that showed it.
    """

    candidate: Candidate
    why: str
    reason: Reason
    violation: Violation | None = None
    runs: int = 0

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """A candidate of which only a bound is known: on the typical stretch its highest rate is below ``most_per_s``.

    That is ``physical_per_s``, which no batch could pass, or less where ``runs`` simulations showed it. ``alone_s``:
    what the SLO's bounds look at, with each request alone on it, at least.
    """

    candidate: Candidate
    most_per_s: float
    physical_per_s: float
    runs: int = 0
    alone_s: tuple[float, ...] = ()


class Admitted(NamedTuple):
    """A candidate as a server; ``alone_s``: what the SLO's bounds look at, with each request alone on it, at least."""

    server: Server
    alone_s: tuple[float, ...]


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


def _mostly_links(server: Server, lengths: Lengths) -> str:
    """A clause where the links between accelerators take most of a mean prompt's step."""
    mean = max(1, int(lengths.prompts.sum()) // len(lengths.prompts))
    step = server.estimator.step(prefill_shape(1, mean, server.estimator.window_tokens))
    share = step.communication_s / step.step_s if step.step_s else 0.0
    return f" (the links between accelerators take {share:.0%} of a prompt's step)" if share > 0.5 else ""


def admitted(
    candidate: Candidate,
    lengths: Lengths,
    slo: Slo,
    estimator: str | None,
    hash_block_tokens: int | None,
    clocks: Callable[[Deployment], Estimator] | None = None,
) -> Admitted | Rejected:
    """The candidate as a server, unless its memory or the physics of its SLO rule it out; nothing is simulated."""
    unsplit = why_not_split(candidate)
    if unsplit:
        return Rejected(candidate=candidate, why=unsplit, reason=Reason.SPLIT)
    try:
        clock = None if clocks is None else clocks(candidate.deployment)
        server = server_of(candidate, estimator, hash_block_tokens, clock)
        why = why_too_small(server, lengths)
        refused = "" if why or not isinstance(server, Server) else why_refused(server, lengths)
    except InputError as error:
        return Rejected(candidate=candidate, why=str(error), reason=Reason.MEMORY)
    if why or not isinstance(server, Server):
        return Rejected(candidate=candidate, why=why, reason=Reason.MEMORY)
    if refused:
        return Rejected(candidate=candidate, why=refused, reason=Reason.REFUSES)
    alone_s = least_values(server, lengths, slo)
    broken = broken_by(alone_s, slo)
    if broken:
        why = f"even with each request alone, {broken[0]}{_mostly_links(server, lengths)}"
        return Rejected(candidate=candidate, why=why, reason=Reason.ALONE, violation=broken[0])
    return Admitted(server, alone_s)


def why_too_small(server: Server | DoesNotFit, lengths: Lengths) -> str:
    """Why the memory does not do; empty where it does."""
    if not isinstance(server, Server):
        return f"does not fit: {format_bytes(server.short_by_bytes)} short on each accelerator"
    held = (server.blocks or 0) * server.block_tokens
    longest = int((lengths.prompts + lengths.outputs).max())
    if longest > held:
        return f"its pool of {held:,} KV tokens does not hold the longest request of {longest:,}"
    return ""


def why_refused(server: Server, lengths: Lengths) -> str:
    """Why the policy refuses a request that comes to an idle server, as its engine would; empty where it takes all."""
    batcher = server.policy.batcher(BlockPool(server.blocks, server.block_tokens), server.estimator.window_tokens)
    for each in lengths.hardest:
        if not batcher.add(Sequence(each.serial, each.prompt_tokens, each.output_tokens), 0.0):
            tokens = f"{each.prompt_tokens:,} tokens in and {each.output_tokens:,} out"
            return f"it refuses a request of {tokens}: more than its steps or its cache can take"
    return ""


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
    physical_per_s: float,
    wanted_per_s: float = 0.0,
    guess_per_s: float | None = None,
    precision: float = PRECISION,
    stretch_rate_per_s: float | None = None,
    whole: bool,
) -> Weighed | Rejected | Possible:
    """The highest rate at which ``server`` keeps ``slo`` on ``traffic``, or that there is none.

    Possible: it is not above ``wanted_per_s``, and more was not asked. No batch passes ``physical_per_s``.
    """
    found = highest_above(wanted_per_s, server, traffic, slo, guess_per_s, precision, possible_per_s=physical_per_s)
    if isinstance(found, Behind):
        return Possible(
            candidate=candidate, most_per_s=found.most_per_s, physical_per_s=physical_per_s, runs=found.runs
        )
    if found.rate_per_s <= 0:
        broken = slo.violations(found.summary)
        return Rejected(
            candidate=candidate,
            why=f"not even at {found.lowest_per_s:.3g} requests/s: {broken[0]}" if broken else "no request completes",
            reason=Reason.SIMULATED if stretch_rate_per_s is None else Reason.WHOLE,
            violation=broken[0] if broken else None,
            runs=found.runs,
        )
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
