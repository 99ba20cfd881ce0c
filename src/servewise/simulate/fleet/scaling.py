"""An autoscaler on the fleet's timeline: it orders replicas, which take their time to come, and lets others go."""

from __future__ import annotations

from typing import cast

from servewise.simulate.fleet.autoscale import Autoscale, Autoscaler, Seen
from servewise.simulate.fleet.core import FleetCore
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.member import DOWN, DRAINING, GONE, STARTING, UP, Member
from servewise.simulate.fleet.timeline import COMES, SCALES, Event
from servewise.simulate.timed import UNSET, TimedSequence


class Scaling:
    """Asks an Autoscaler at every interval while requests come or are there; new replicas are of ``kind``.

    The first to leave are those that are not up yet (their start is cancelled), then the youngest.
    """

    def __init__(self, core: FleetCore, settings: Autoscale, kind: ReplicaKind) -> None:
        self._core, self._settings, self._kind = core, settings, kind
        self._autoscaler = Autoscaler(settings)
        self._others = core.handlers.get(COMES)
        core.handlers[SCALES] = self._scales
        core.handlers[COMES] = self._comes
        self._ask_at(settings.interval_s)

    def _ask_at(self, at_s: float) -> None:
        self._core.timeline.add(at_s, SCALES, 0, 0, None)

    def _scales(self, event: Event) -> None:
        now_s = event[0]
        if not self._core.busy:
            return
        there = [each for each in self._core.roster.members if each.state in (UP, STARTING, DOWN)]
        wanted = self._autoscaler.wanted(now_s, self._seen(there, now_s))
        for _ in range(len(there), wanted):
            self._order(now_s)
        for member in self._leaving(there, len(there) - wanted):
            self._dismiss(member, now_s)
        self._ask_at(now_s + self._settings.interval_s)

    def _seen(self, there: list[Member], now_s: float) -> Seen:
        held = self._core.held
        waits = [now_s - each.arrival_s for each in held]
        for member in there:
            found = (cast("TimedSequence", each) for each in member.replica.batcher.unreleased())
            waits += [now_s - each.arrival_s for each in found if each.admitted_s is UNSET]
        return Seen(
            replicas=len(there),
            slots=self._kind.policy.slots,
            requests=len(held) + sum(each.in_flight for each in there),
            waiting=len(waits),
            longest_wait_s=max(waits, default=0.0),
        )

    def _order(self, now_s: float) -> None:
        member = self._core.roster.order(self._kind, now_s)
        self._core.timeline.add(now_s + self._settings.startup_s, COMES, member.number, member.version, member)

    @staticmethod
    def _leaving(there: list[Member], count: int) -> list[Member]:
        ranked = sorted(there, key=lambda each: (each.state == UP, -each.number))
        return ranked[: max(count, 0)]

    def _dismiss(self, member: Member, now_s: float) -> None:
        core = self._core
        if member.state == UP and member.in_flight:
            core.roster.become(member, DRAINING, now_s)
            return
        core.roster.become(member, GONE, now_s)
        core.router.gone(member.number)

    def _comes(self, event: Event) -> None:
        member: Member = event[4]
        if member.state == STARTING:
            member.replica.wait(event[0])
            self._core.comes_up(member, event[0])
        elif self._others is not None:
            self._others(event)
