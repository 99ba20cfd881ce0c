"""A part of a fleet by itself: some of its replicas, with the requests that the router sends there.

Where the router goes by requests alone, a replica's run does not hang on the others'. So the parts of a fleet, run
anywhere, give what the whole gives, step by step; their records, merged by the moment and the order in which the
fleet's core would have come to each (``merging``), are the whole's, row by row. A property test holds them equal.

Not so where a policy waits for company without an hour of its own (static batching): when nobody will come any more is
for the whole fleet to say. A part that comes to that raises ``NotApart``.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol, cast

from servewise.batching.sequence import Sequence as Tokens
from servewise.records.columns import RequestColumns, StepColumns
from servewise.simulate.arrivals import OpenArrivals
from servewise.simulate.fleet.core import FleetCore
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.member import UP, Member
from servewise.simulate.fleet.roster import Roster
from servewise.simulate.fleet.routers.router import Choice, Router
from servewise.simulate.fleet.timeline import Event
from servewise.simulate.recorder import LEAVE_ROWS, STEP_ROW, Recorder, Sink
from servewise.simulate.replica import Replica
from servewise.simulate.timed import TimedSequence
from servewise.workload.request import Request

# At one moment, steps end by replica; requests arrive, by number; steps end that an arrival cut to end at that moment.
ARRIVING, CUT = 1 << 40, 1 << 50
REPLICA = STEP_ROW.index("replica")
Key = tuple[float, int]  # when the fleet's core comes to a record [s]; then by replica, or by the request that arrives


class NotApart(Exception):
    """The run of a part hangs on the others after all."""


@dataclass(slots=True)
class Keys:
    """The keys of records, row by row."""

    at_s: array[float]
    order: array[int]


class KeyedSink(Protocol):
    """What takes a part's records with their keys."""

    def requests(self, requests: RequestColumns, keys: Keys) -> None:
        """The next requests that ended."""
        ...

    def steps(self, steps: StepColumns, keys: Keys) -> None:
        """The next steps."""
        ...


def simulate_portion(
    requests: Iterable[Request],
    kinds: Sequence[ReplicaKind],
    router: Router,
    mine: Sequence[int],
    into: KeyedSink,
    *,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Run the replicas of the numbers ``mine`` (ascending) of the fleet of ``kinds``; ``into`` takes their records.

    ``requests`` are all of the fleet's. Raises NotApart where the part cannot be run by itself.
    """
    sent: deque[int] = deque()
    recorder = _KeyedRecorder(into)

    def made(place: int, kind: ReplicaKind, now_s: float) -> Member:
        return Member(mine[place], kind, recorder, ordered_s=now_s)

    roster = Roster(made)
    source = OpenArrivals(_sent_to(frozenset(mine), requests, router, kinds, sent))
    core = _PortionCore(source, roster, _Sent(sent), recorder)
    for number in mine:
        roster.become(roster.order(kinds[number], 0.0), UP, 0.0)
    core.run(progress=progress)
    recorder.leave()


@dataclass(slots=True)
class _Place:
    """A replica as a router sees it that does not heed its state."""

    number: int
    weight: float
    in_flight: int = 0
    waiting: int = 0


def _sent_to(
    mine: frozenset[int], requests: Iterable[Request], router: Router, kinds: Sequence[ReplicaKind], sent: deque[int]
) -> Iterator[Request]:
    """Of ``requests`` those that ``router`` sends to ``mine``; ``sent`` gets the replica of each."""
    places = cast("list[Choice]", [_Place(number, kind.weight) for number, kind in enumerate(kinds)])
    choose = router.choose
    for request in requests:
        number = choose(cast("Tokens", request), places)
        if number in mine:
            sent.append(number)
            yield request


class _Sent:
    """The router of a part: requests were sent before, in their order."""

    name = "sent"

    def __init__(self, sent: deque[int]) -> None:
        self._sent = sent

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:  # noqa: ARG002 - the seam of all routers
        """Where it was sent."""
        number = self._sent.popleft()
        return next(place for place, each in enumerate(up) if each.number == number)

    def gone(self, number: int) -> None:
        """None goes."""


class _KeyedRecorder(Recorder):
    """Gives every row its key: the end of its step and the replica, or ``arriving``, the request that arrives then."""

    def __init__(self, into: KeyedSink) -> None:
        super().__init__(cast("Sink", into))  # ``_leave`` hands the keys on too
        self._keyed = into
        self.arriving: Key | None = None
        self.now_s, self.arrived_s = 0.0, -inf  # the moment of the core, and that of the last arrival
        self._ended, self._stepped = Keys(array("d"), array("q")), Keys(array("d"), array("q"))
        self.stepped = self._step

    def ended(self, sequence: TimedSequence, now_s: float, status: int, replica: Replica) -> None:
        """A request reached its end."""
        super().ended(sequence, now_s, status, replica)
        at_s, order = self._key(replica.number)
        self._ended.at_s.append(at_s)
        self._ended.order.append(order)

    def _step(self, row: tuple[float, ...]) -> None:
        self._step_rows.append(row)
        at_s, order = self._key(int(row[REPLICA]))
        self._stepped.at_s.append(at_s)
        self._stepped.order.append(order)

    def _key(self, number: int) -> Key:
        return self.arriving or (self.now_s, number + CUT if self.now_s == self.arrived_s else number)

    def _leave(self, into: Sink, least: int) -> None:  # noqa: ARG002 - it has its own
        if len(self._requests) >= min(least, LEAVE_ROWS):
            self._keyed.requests(self._requests, self._ended)
            self._requests, self._ended = RequestColumns(), Keys(array("d"), array("q"))
        if len(self._steps) >= min(least, LEAVE_ROWS):
            self._keyed.steps(self._steps, self._stepped)
            self._steps, self._stepped = StepColumns(), Keys(array("d"), array("q"))


class _PortionCore(FleetCore):
    """A core that says which request arrives while its arrival lasts, and refuses to end the whole fleet's waiting."""

    recorder: _KeyedRecorder

    def step(self, event: Event) -> None:
        """A step ends: what is recorded is recorded then."""
        self.recorder.now_s = event[0]
        super().step(event)

    def abandon(self) -> None:
        """The run is over: what is still there comes last."""
        self.recorder.now_s = inf
        super().abandon()

    def deliver(self, member: Member, sequence: TimedSequence, now_s: float) -> None:
        """As for any fleet; what is recorded meanwhile is recorded at this arrival."""
        self.recorder.arriving = (now_s, ARRIVING + sequence.serial)
        super().deliver(member, sequence, now_s)
        self.recorder.arriving, self.recorder.arrived_s = None, now_s

    def _close_waiting(self, now_s: float) -> None:
        if any(each.waiting and each.replica.batcher.wake_s() == inf for each in self.roster.members):
            raise NotApart
        super()._close_waiting(now_s)
