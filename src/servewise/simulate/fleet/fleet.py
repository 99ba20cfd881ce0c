"""Run requests through several replicas behind a router."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from servewise.errors import InputError
from servewise.records.columns import RequestColumns, StepColumns
from servewise.simulate.arrivals import Arrivals, OpenArrivals
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.core import FleetCore
from servewise.simulate.fleet.failing import Failing
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.lockstep import LockstepCore
from servewise.simulate.fleet.member import UP, Member
from servewise.simulate.fleet.outage import Outage
from servewise.simulate.fleet.roster import Head, Roster
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.fleet.scaling import Scaling
from servewise.simulate.recorder import Recorder, Sink
from servewise.simulate.replica import Watch
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRun:
    """What a run wrote. ``slots`` are each replica's, by number; the records name the replica that ended a request.

    ``heads`` are the counts of replicas at each change; ``paid`` from when to when each, by number, is paid: from its
    order to its going or the last end [s]; ``retries`` how often a request, by id, was sent anew after a failure.
    """

    requests: RequestColumns
    steps: StepColumns
    slots: tuple[int, ...]
    heads: tuple[Head, ...]
    paid: tuple[tuple[float, float], ...]
    retries: Mapping[int, int] = field(default_factory=dict)

    @property
    def replica_seconds(self) -> float:
        """What is paid for in all [s]."""
        return sum(self.paid_since(0.0))

    def paid_since(self, at_s: float) -> tuple[float, ...]:
        """For how long each is paid from ``at_s`` on [s], by number."""
        return tuple(max(0.0, to_s - max(from_s, at_s)) for from_s, to_s in self.paid)


def simulate_fleet(
    requests: Iterable[Request] | Arrivals,
    kinds: Sequence[ReplicaKind],
    router: Router,
    *,
    outages: Sequence[Outage] = (),
    on_failure: str = "retry",
    autoscale: Autoscale | None = None,
    lockstep: bool = False,
    until: Callable[[RequestColumns], bool] | None = None,
    progress: Callable[[int], None] | None = None,
    longest_jump: int | None = None,
    watch: Watch | None = None,
    into: Sink | None = None,
) -> FleetRun:
    """Run ``requests`` through replicas of ``kinds``, each sent where ``router`` says when it arrives.

    ``outages`` and what ``on_failure`` does to requests: see ``Failing``. ``autoscale``: ``kinds`` are the first
    replicas, further ones are like the first of them. ``lockstep``: all steps last as long as the slowest replica's
    (see ``LockstepCore``). ``until``, ``progress``, ``longest_jump``, ``watch`` and ``into`` as in ``simulate``.

    Raises InputError for requests out of order, a fleet without replicas, and failures of replicas that there are not.
    """
    _check(kinds, lockstep=lockstep, changing=bool(outages or autoscale))
    source = OpenArrivals(requests) if isinstance(requests, Iterable) else requests
    recorder = Recorder(into)

    def made(number: int, kind: ReplicaKind, now_s: float) -> Member:
        return Member(number, kind, recorder, longest_jump=longest_jump, watch=watch, ordered_s=now_s)

    roster = Roster(made)
    core = (LockstepCore if lockstep else FleetCore)(source, roster, router, recorder)
    for kind in kinds:
        roster.become(roster.order(kind, 0.0), UP, 0.0)
    failing = Failing(core, outages, on_failure)
    if autoscale is not None:
        Scaling(core, autoscale, kinds[0])
    core.run(until, progress)
    return run_of(core, failing.retries)


def _check(kinds: Sequence[ReplicaKind], *, lockstep: bool, changing: bool) -> None:
    if not kinds:
        raise InputError("a fleet has at least one replica", where="replicas")
    if lockstep and changing:
        raise InputError("ranks in lockstep fail and start together", where="lockstep", hint="leave one of them out")
    if lockstep and any(each.stages > 1 for each in kinds):
        raise InputError("ranks in lockstep have one pipeline stage each", where="lockstep", hint="--pp 1")


def run_of(core: FleetCore, retries: Mapping[int, int]) -> FleetRun:
    """What ``core`` wrote."""
    recorder = core.recorder
    recorder.leave()
    return FleetRun(
        requests=recorder.requests,
        steps=recorder.steps,
        slots=tuple(member.slots for member in core.roster.members),
        heads=tuple(core.roster.heads),
        paid=core.roster.paid(recorder.last_end_s),
        retries=retries,
    )
