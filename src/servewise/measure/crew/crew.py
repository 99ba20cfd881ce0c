"""Worker processes, of one host or several, that together send one schedule."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from time import monotonic
from types import TracebackType
from typing import Self

from servewise.errors import RunFailed
from servewise.measure.crew.clock_offset import HostClock, Offset, offset_of
from servewise.measure.crew.member import Member
from servewise.measure.crew.muster import muster
from servewise.measure.crew.seat import Host
from servewise.measure.drive.job import Job, Stop
from servewise.measure.drive.terms import USUAL, Terms
from servewise.measure.exchange import Exchange
from servewise.measure.schedule import Schedule
from servewise.measure.sending import Sending
from servewise.measure.target import Target

LOOK_S = 0.05
START_S = 30.0  # a worker imports for a fraction of a second
GOODBYE_S = 5.0
PINGS = 16
REMOTE_LEAD_S = 0.25  # beside the round trips of all that is asked and told before a run


class Crew:
    """Workers, used for one ``drive`` after another; a context manager that ends them and closes their hosts.

    ``lead_s``: how long before its start a run's shares must be here, so that every host has its own in time [s].
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = list(hosts)
        self._members = [Member(host, seat) for host in self._hosts for seat in host.seats]
        self.lead_s = 0.0
        try:
            self._await_ready()
            began_s = monotonic()
            if any(self._offsets()):
                self.lead_s = REMOTE_LEAD_S + 3 * (monotonic() - began_s)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def workers(self) -> int:
        """Those that are left."""
        return sum(not each.end for each in self._members)

    @property
    def under_way(self) -> int:
        """Asks that were taken and have not ended, as far as is known here (0.05 s late, and the way)."""
        return sum(each.under_way for each in self._members)

    def close(self) -> None:
        """End all workers."""
        for host in self._hosts:
            host.close()
        self._hosts.clear()
        self._members.clear()

    def drive(
        self,
        schedule: Schedule,
        target: Target,
        *,
        start_s: float,
        on_end: Callable[[Exchange], None],
        stop: Callable[[], bool] | None = None,
        terms: Terms = USUAL,
    ) -> Sending:
        """As ``drive``: each worker sends its share of ``schedule``; ``on_end`` is called in this thread.

        Times of an exchange count from ``start_s`` on the clock of the host that sent it, which is told where its own
        clock stands then: nothing that is measured on one clock is ever moved. A worker that is lost takes its share
        with it: what it had under way ends as lost, the others go on, and ``Sending.hosts`` says so. RunFailed where
        none is left, or where one fails: the others are stopped, and what they had is handed over first.
        """
        before = self._offsets()
        members = self._left()
        for member, share in zip(members, schedule.split(len(members)), strict=True):
            offset = before.get(member.host)
            began_s = start_s + (offset.offset_s if offset else 0.0)
            member.begin(Job(schedule=share, target=target, start_s=began_s, terms=terms))
        try:
            self._gather(members, on_end, stop)
        except BaseException:
            self._stop_at_once(members, on_end)
            raise
        after = self._offsets()
        return muster(members, {host: HostClock(offset, after.get(host)) for host, offset in before.items()})

    def _offsets(self) -> dict[Host, Offset]:
        """Of each host's clock now, where it is not this process's own. A host that does not answer is lost."""
        found = {}
        for host in dict.fromkeys(each.host for each in self._members if not (each.end or each.host.clock_shared)):
            pings = host.pings(PINGS)
            if pings:
                found[host] = offset_of(pings)
            else:
                for member in (each for each in self._members if each.host is host and not each.end):
                    member.end = "its clock does not answer"
        return found

    def _left(self) -> list[Member]:
        """Those that are there; who went while nothing was to be done is found out now. RunFailed where none is."""
        there = [each for each in self._members if not each.end]
        for member in select.select(there, [], [], 0)[0]:
            member.listen(_unwanted)
        left = [each for each in there if not each.end]
        if not left:
            raise RunFailed(f"no worker process is left ({self._members[-1].end if self._members else 'closed'})")
        return left

    def _await_ready(self) -> None:
        until_s = monotonic() + START_S
        while not all(member.ready for member in self._members):
            if monotonic() > until_s:
                raise RunFailed("the worker processes did not start in time")
            self._listen([each for each in self._members if not each.ready], _unwanted)
            ended = [member.end for member in self._members if member.end]
            if ended:
                raise RunFailed(ended[0])

    def _gather(
        self, members: Sequence[Member], on_end: Callable[[Exchange], None], stop: Callable[[], bool] | None
    ) -> None:
        stopped = False
        while not all(member.done for member in members):
            if stop is not None and stop() and not stopped:
                stopped = True
                for member in members:
                    member.tell(Stop(at_once=False))
            self._listen(members, on_end)
        faults = [member.done.fault for member in members if member.done and member.done.fault]
        if faults:
            raise RunFailed(f"a worker process failed: {faults[0]}")
        if all(member.end for member in members):
            raise RunFailed(f"{members[0].end}; the run's results up to then are kept")

    def _listen(self, members: Sequence[Member], on_end: Callable[[Exchange], None]) -> None:
        """Hear all who speak within a moment."""
        waiting = [member for member in members if not member.done]
        for member in select.select(waiting, [], [], LOOK_S)[0]:
            member.listen(on_end)

    def _stop_at_once(self, members: Sequence[Member], on_end: Callable[[Exchange], None]) -> None:
        for member in members:
            member.tell(Stop(at_once=True))
        until_s = monotonic() + GOODBYE_S
        while not all(member.done for member in members) and monotonic() < until_s:
            self._listen(members, on_end)


def _unwanted(exchange: Exchange) -> None:
    raise AssertionError(f"request {exchange.ask.serial} ended before a run began")
