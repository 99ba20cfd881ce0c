"""The traffic that a plan offers its candidates: a load's requests that the context takes, and other draws of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from servewise.ask.numbers import whole
from servewise.ask.serving import Door, WorkloadLike, is_seeded, refused_caveats, workload_named
from servewise.ask.serving import caveats_of as workload_caveats
from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.plan.planner import STRETCH
from servewise.plan.traffic import Traffic, stretches, traffic_of
from servewise.workload.conversations import Conversations
from servewise.workload.synthetic import ClosedLoop
from servewise.workload.workload import Workload

OTHERS = 4


def open_load(workload: WorkloadLike, requests: int | None) -> Workload:
    """The load of that name, cut to ``requests``; InputError where its arrivals wait for answers: it has no rate."""
    load = workload_named(workload, requests)
    if isinstance(load, ClosedLoop):
        raise InputError("a closed loop has no rate to plan for", where="workload", hint="use arrivals or a trace")
    if isinstance(load, Conversations):
        what = "conversations wait for their answers, and a plan scales the times of requests"
        raise InputError(what, where="workload", hint="plan with chat or azure-conv, then simulate the winner")
    return load


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """``load`` as a server with the context ``longest`` sees it; ``came`` requests in all, ``refused`` at the door."""

    load: Workload
    seed: int
    longest: int | None
    traffic: Traffic = field(init=False)
    came: int = field(init=False)
    refused: int = field(init=False)

    def __post_init__(self) -> None:
        """Draw the requests."""
        door = Door(self.load.requests(whole(self.seed, "seed", least=0)), self.longest)
        object.__setattr__(self, "traffic", traffic_of(list(door)))
        object.__setattr__(self, "came", door.came)
        object.__setattr__(self, "refused", door.refused)

    def taken(self, rate_per_s: float | None) -> float | None:
        """The part of ``rate_per_s`` that is not refused [requests/s]."""
        return None if rate_per_s is None else rate_per_s * len(self.traffic.requests) / self.came

    def others(self) -> tuple[Traffic, ...]:
        """Other seeds of the load, cut to a stretch; of a trace, stretches of itself."""
        if not is_seeded(self.load):
            return tuple(stretches(self.traffic, OTHERS, STRETCH)) if len(self.traffic.requests) > STRETCH else ()
        seeds = range(self.seed + 1, self.seed + 1 + OTHERS)
        found = [traffic_of(list(Door(self.load.requests(each), self.longest))) for each in seeds]
        return tuple(replace(each.stretch(0, STRETCH), rate_per_s=each.rate_per_s) for each in found)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What a reader must know of it."""
        return (*workload_caveats(self.load), *refused_caveats(self.refused, self.came, self.longest))
