"""Who is there: the members of a fleet, which of them take requests, and how many there were when."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.member import DOWN, DRAINING, GONE, STARTING, UP, Member

Maker = Callable[[int, ReplicaKind, float], Member]  # number, kind, when it is ordered [s]


class Head(NamedTuple):
    """How many replicas there are from ``at_s`` on: up, starting, draining (they take no new requests), down."""

    at_s: float
    up: int
    starting: int
    draining: int
    down: int


class Roster:
    """``up`` are the members that take requests, in order of number; ``heads`` the counts at each change."""

    def __init__(self, make: Maker) -> None:
        self._make = make
        self.members: list[Member] = []
        self.up: list[Member] = []
        self.heads: list[Head] = []

    def order(self, kind: ReplicaKind, now_s: float) -> Member:
        """A new member, starting."""
        member = self._make(len(self.members), kind, now_s)
        self.members.append(member)
        self._count(now_s)
        return member

    def become(self, member: Member, state: str, now_s: float) -> None:
        """``member`` is in another ``state`` from ``now_s`` on."""
        member.state = state
        if state == GONE:
            member.gone_s = now_s
        self.up = [each for each in self.members if each.state == UP]
        self._count(now_s)

    def _count(self, now_s: float) -> None:
        counts = dict.fromkeys((UP, STARTING, DRAINING, DOWN, GONE), 0)
        for each in self.members:
            counts[each.state] += 1
        if self.heads and self.heads[-1].at_s == now_s:
            self.heads.pop()
        self.heads.append(Head(now_s, counts[UP], counts[STARTING], counts[DRAINING], counts[DOWN]))

    def paid(self, until_s: float) -> tuple[tuple[float, float], ...]:
        """From when to when each is paid, by number: from its order to its going, or ``until_s`` [s]."""
        return tuple((each.ordered_s, max(each.ordered_s, min(each.gone_s, until_s))) for each in self.members)
