"""The fleet's event core: requests to a router, steps of many replicas, on one timeline.

Simultaneous events, as for one server: steps end, in the order of the replicas' numbers; then requests arrive; then
whoever is idle plans. So a fleet of one replica gives what ``simulate`` gives; a property test holds the two equal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf, nan

from servewise.records.columns import UNFINISHED, RequestColumns
from servewise.simulate.arrivals import Arrivals
from servewise.simulate.fleet.member import DRAINING, GONE, UP, Member
from servewise.simulate.fleet.roster import Roster
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.fleet.timeline import STEP, WAKES, Event, Timeline
from servewise.simulate.recorder import Recorder
from servewise.simulate.timed import TimedSequence
from servewise.workload.request import Request

ASK_EVERY = 512  # requests that end between two questions of ``until`` and two words to ``progress``
Handler = Callable[[Event], None]


class FleetCore:
    """One run in progress. What beside steps can happen comes from parts that put their handlers in ``handlers``.

    ``held`` are requests that came while no replica was up; ``under_way`` the steps that run; ``touched`` the members
    to which something happened since they last planned.
    """

    def __init__(self, source: Arrivals, roster: Roster, router: Router, recorder: Recorder) -> None:
        self.source, self.roster, self.router, self.recorder = source, roster, router, recorder
        self.timeline = Timeline()
        self.handlers: dict[int, Handler] = {STEP: self.step, WAKES: self.wake}
        self.held: deque[TimedSequence] = deque()
        self.under_way = 0
        self.ended_count = 0
        self.touched: list[Member] = []

    def run(
        self,
        until: Callable[[RequestColumns], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Run to the last request's end, or until told to stop."""
        source, events, handlers, tell_at = self.source, self.timeline.events, self.handlers, ASK_EVERY
        now_s = 0.0
        while True:
            next_s = source.next_s
            if next_s == inf and not self.under_way:
                self._close_waiting(now_s)
            now_s = events[0][0] if events and events[0][0] < next_s else next_s
            if now_s == inf:
                break
            while events and events[0][0] <= now_s:
                event = heappop(events)
                handlers[event[1]](event)
            while source.next_s <= now_s:
                self.arrive(source.take(), now_s)
            if self.touched:
                self.plan(now_s)
            if self.ended_count >= tell_at:
                tell_at = self.ended_count + ASK_EVERY
                if self._told(until, progress):
                    break
        self.abandon()
        if progress is not None:
            progress(self.ended_count)

    @property
    def busy(self) -> bool:
        """Whether requests are there, or known to come."""
        return self.source.next_s < inf or bool(self.held) or any(each.in_flight for each in self.roster.members)

    def arrive(self, request: Request, now_s: float) -> None:
        """A client sends ``request``."""
        self.route(TimedSequence(request), now_s)

    def route(self, sequence: TimedSequence, now_s: float) -> None:
        """Send ``sequence`` to the replica that the router chooses; hold it while none is up."""
        up = self.roster.up
        if up:
            self.deliver(up[self.router.choose(sequence, up)], sequence, now_s)
        else:
            self.held.append(sequence)

    def deliver(self, member: Member, sequence: TimedSequence, now_s: float) -> None:
        """``sequence`` reaches ``member``: a jump that it could join ends with the first step at or after."""
        self.reach(member, now_s)
        if member.replica.add(sequence, now_s):
            member.in_flight += 1
        else:
            self.source.ended(sequence.serial, now_s)
            self.ended_count += 1

    def reach(self, member: Member, now_s: float) -> None:
        """Something comes to ``member`` now: what runs there may have to end sooner, or it may begin."""
        replica = member.replica
        if replica.running and not member.is_cut:
            due_s, member.is_cut = replica.due_s, True
            replica.cut(now_s)
            if replica.due_s < now_s:
                self._catch_up(member, now_s)
            elif replica.due_s != due_s:
                self._due(member, replica.due_s)
        if not replica.running:
            self.touched.append(member)

    def _catch_up(self, member: Member, now_s: float) -> None:
        """By rounding a step ended just before ``now_s``: it ends first, and others run until one ends later."""
        replica = member.replica
        while replica.due_s < now_s:
            self.finish(member)
            self._begin(member)
            replica.cut(now_s)
        if replica.running:
            member.is_cut = True
            self._due(member, replica.due_s)

    def step(self, event: Event) -> None:
        """A step ends, unless the entry is stale."""
        member = event[4]
        if event[3] == member.version:
            self.under_way -= 1
            ended = member.replica.finish()
            if ended:
                self.ended(member, ended)
            self.touched.append(member)

    def finish(self, member: Member) -> None:
        """The step under way at ``member`` ends."""
        ended = member.replica.finish()
        self.under_way -= 1
        if ended:
            self.ended(member, ended)

    def ended(self, member: Member, ended: list[TimedSequence]) -> None:
        """``ended`` left ``member``: clients have their answers."""
        replica, answered = member.replica, self.source.ended
        told_s = replica.now_s + replica.outside_s
        for sequence in ended:
            answered(sequence.serial, told_s)
        self.ended_count += len(ended)
        self.left(member, len(ended), replica.now_s)

    def left(self, member: Member, count: int, now_s: float) -> None:
        """``count`` requests are no longer at ``member``; one that drains goes with its last."""
        member.in_flight -= count
        if member.state == DRAINING and not member.in_flight:
            self.roster.become(member, GONE, now_s)
            self.router.gone(member.number)

    def comes_up(self, member: Member, now_s: float) -> None:
        """``member`` takes requests from now on, first those that were held."""
        self.roster.become(member, UP, now_s)
        while self.held:
            self.route(self.held.popleft(), now_s)

    def wake(self, event: Event) -> None:
        """A policy's own hour."""
        member: Member = event[4]
        if event[3] == member.version:
            self.touched.append(member)

    def plan(self, now_s: float) -> None:
        """Whoever was touched and is idle begins."""
        for member in self.touched:
            if not member.replica.running and member.state in (UP, DRAINING):
                member.replica.wait(now_s)
                self._begin(member)
        self.touched.clear()

    def _begin(self, member: Member) -> None:
        if self.begins(member):
            self._due(member, member.replica.due_s)

    def begins(self, member: Member) -> bool:
        """Whether ``member`` has a step to run; it is under way then. If not, it wakes at its policy's hour."""
        member.is_cut = False
        if member.replica.begin():
            self.under_way += 1
            return True
        wake_s = member.replica.batcher.wake_s()
        if wake_s < inf:
            member.version += 1
            self.timeline.add(wake_s, WAKES, member.number, member.version, member)
        return False

    def _due(self, member: Member, due_s: float) -> None:
        member.version = version = member.version + 1
        heappush(self.timeline.events, (due_s, STEP, member.number, version, member))

    def _close_waiting(self, now_s: float) -> None:
        """Nothing runs and nobody will come: policies that wait for company need not."""
        for member in self.roster.members:
            batcher = member.replica.batcher
            if member.waiting and batcher.wake_s() == inf:
                batcher.close()
                self.touched.append(member)
        self.plan(now_s)

    def _told(self, until: Callable[[RequestColumns], bool] | None, progress: Callable[[int], None] | None) -> bool:
        self.recorder.flush_if_large()
        if progress is not None:
            progress(self.ended_count)
        return until is not None and until(self.recorder.requests)

    def abandon(self) -> None:
        """The run is over: what is still there is recorded as unfinished."""
        for member in self.roster.members:
            member.replica.abandon()
        for sequence in self.held:
            self.recorder.ended(sequence, nan, UNFINISHED, self.roster.members[0].replica)
