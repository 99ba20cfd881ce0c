"""The loop: due requests leave, arrivals are stamped and put aside, and parsed when there is time."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from math import isnan
from time import monotonic

from servewise.measure.dialect.answer import Ending
from servewise.measure.drive.deadlines import overdue, sweep_interval_s
from servewise.measure.drive.lane import Lane, Phase
from servewise.measure.drive.lanes import Lanes, why
from servewise.measure.drive.own_error import OwnError
from servewise.measure.drive.terms import Terms
from servewise.measure.drive.trip import Trip
from servewise.measure.exchange import Exchange
from servewise.measure.hiding import hidden, secrets_of
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due, Schedule
from servewise.measure.target import Target
from servewise.measure.wire.connection import READ_BYTES
from servewise.measure.wire.poller import ERROR, READ
from servewise.measure.wire.request_bytes import request_writer
from servewise.measure.wire.run_clock import RunClock
from servewise.measure.wire.stamping import ANCILLARY_BYTES

SENDS_AT_ONCE = 32
PARSE_AT_ONCE = 32  # reads
MOST_UNPARSED = 256  # reads of an answer that wait; the rest stays with the kernel, which slows the server down
WORK_S = 0.5e-3  # parsing goes on for so long before the sockets are looked at again


class Sender:
    """Everything that one process has under way. ``drive`` makes one, runs it and closes it."""

    def __init__(
        self,
        schedule: Schedule,
        target: Target,
        *,
        start_s: float,
        on_end: Callable[[Exchange], None],
        terms: Terms,
    ) -> None:
        self.own_error = OwnError()
        self.lanes = Lanes(target)
        self.under_way: dict[Trip, Lane | None] = {}
        self._schedule, self._target, self._on_end = schedule, target, on_end
        self._wanted = {"keep_text": terms.keep_text, "keep_logprobs": terms.keep_logprobs}
        self._start_s = start_s
        self._clock = RunClock(start_s)
        self._to_parse: deque[Trip] = deque()
        self._written = request_writer(target)
        self._secrets = secrets_of(target)
        self._swept_s = 0.0
        self._looked_s = monotonic()

    def turn(self, patience_s: float) -> None:
        """One turn of the loop: wait for at most ``patience_s``, read, parse a little."""
        self.own_error.stalled(monotonic() - self._looked_s)
        ready = self.lanes.poller.wait(0.0 if self._to_parse else patience_s)
        self._looked_s = monotonic()
        self._read_all(ready, self._clock.follow())
        self._parse_until(monotonic() + WORK_S)
        self._sweep()

    def begin_due(self, now_s: float) -> None:
        """Begin what is due, a few at a time."""
        for _ in range(SENDS_AT_ONCE):
            due = self._schedule.take(now_s)
            if due is None:
                return
            self._begin(due)

    def now(self) -> float:
        """The run's time."""
        return monotonic() - self._start_s

    def cancel(self, reason: str) -> None:
        """End all that is under way."""
        for trip in list(self.under_way):
            self._finish(trip, Outcome.CANCELLED, reason)

    def close(self) -> None:
        """Close all connections."""
        self.lanes.close()
        if self._clock.steps:
            self.own_error.noted["steps of the wall clock, which were taken out"] += self._clock.steps

    def _begin(self, due: Due) -> None:
        trip = Trip(due, self.now(), **self._wanted)
        self.under_way[trip] = None
        self.own_error.most_open = max(self.own_error.most_open, len(self.under_way))
        if self.lanes.no_address:
            self._finish(trip, Outcome.REFUSED, self.lanes.no_address)
            return
        lane = self.lanes.take(trip)
        if lane is None:
            self._dial(trip)
            return
        self.under_way[trip] = lane
        if lane.phase is Phase.READING:  # else it is on its way, and is sent when it is there
            self._send(lane)

    def _dial(self, trip: Trip) -> None:
        """Open a connection for ``trip``: the addresses in turn, the one that last worked first."""
        try:
            self.under_way[trip] = self.lanes.open(trip, trip.tried)
        except (OSError, ValueError) as error:
            self._undialled(trip, error)

    def _undialled(self, trip: Trip, error: Exception) -> None:
        trip.tried += 1
        if trip.tried < len(self.lanes.addresses):
            self._dial(trip)
        else:
            self._finish(trip, Outcome.REFUSED, f"no connection to {self._target.origin}: {why(error)}")

    def _send(self, lane: Lane) -> None:
        trip = lane.trip
        assert trip is not None
        try:
            lane.connection.offer(self._written(trip.due.ask.body))
        except OSError:  # the TLS session is over
            self._ended(lane, Ending.RESET)
            return
        self._write(lane)

    def _write(self, lane: Lane) -> None:
        """Send what the socket takes; the time counts when all has left."""
        try:
            whole = lane.connection.flush()
        except OSError:  # a server that answers before it has read all may close then: what it said is still here
            self.lanes.await_bytes(lane, Phase.READING)
            return
        if not whole:
            self.lanes.await_room(lane)
            return
        trip, sent_s = lane.trip, self.now()
        assert trip is not None
        left_ns = lane.connection.departed_ns()
        if left_ns is not None:
            sent_s = min(sent_s, max(trip.began_s, (left_ns - self._clock.zero_ns) * 1e-9))
        trip.sent_s = trip.heard_s = sent_s
        ready_s = trip.due.scheduled_s if trip.due.ready_s is None else trip.due.ready_s
        self.own_error.lateness_s.append(sent_s - ready_s)
        if lane.phase is not Phase.READING:
            self.lanes.await_bytes(lane, Phase.READING)

    def _read_all(self, ready: list[tuple[int, int]], zero_ns: int) -> None:
        """The hot path: from each ready socket the bytes and their stamp are put aside."""
        lanes, start_s, to_parse = self.lanes.by_fd, self._start_s, self._to_parse
        for fd, mask in ready:
            lane = lanes.get(fd)
            if lane is None:
                continue
            if mask & ERROR:
                self._left(lane, zero_ns)
            if lane.phase is not Phase.READING and not (lane.phase is Phase.WRITING and mask & READ):
                self._step(lane)
                continue
            trip = lane.trip
            if trip is not None and len(trip.reads) > MOST_UNPARSED:
                continue
            try:
                data, ancillary, _, _ = lane.reader(READ_BYTES, ANCILLARY_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                self._ended(lane, Ending.RESET)
                continue
            read_s = monotonic() - start_s
            if data and lane.encrypted:
                data = self._plain(lane, data)
                if not data:
                    continue
            if trip is None or not data:
                self._ended(lane, Ending.CLOSED)
                continue
            trip.reads.append((ancillary, zero_ns, read_s, data))
            trip.heard_s = read_s
            if not trip.queued and trip.wants_parsing(data):
                trip.queued = True
                to_parse.append(trip)

    def _left(self, lane: Lane, zero_ns: int) -> None:
        """The error queue says when the request left, later than the send returned (a real network device)."""
        left_ns, trip = lane.connection.departed_ns(), lane.trip
        if left_ns is not None and trip is not None and trip.heard_s == trip.sent_s:
            trip.sent_s = trip.heard_s = max(trip.sent_s, (left_ns - zero_ns) * 1e-9)

    def _step(self, lane: Lane) -> None:
        """A socket that is not being read is ready for its next step."""
        if lane.phase is Phase.WRITING:
            self._write(lane)
            return
        try:
            if lane.phase is Phase.CONNECTING:
                lane.connection.connected()
                self.lanes.await_bytes(lane, Phase.SECURING)
            else:
                data, _ = lane.connection.receive()
                if not data:
                    raise ssl.SSLError("the server closed the connection during the handshake")
                lane.connection.shake_hands(data)
        except BlockingIOError:
            return
        except OSError as error:
            self._unconnected(lane, error)
            return
        if lane.connection.ready:
            self._ready(lane)

    def _ready(self, lane: Lane) -> None:
        """A new connection may be used: at once, or later where it was opened ahead."""
        if lane.trip is not None:
            self._send(lane)
        else:
            self.lanes.keep(lane)

    def _unconnected(self, lane: Lane, error: OSError) -> None:
        trip = lane.trip
        self.lanes.drop(lane)
        if trip is None:  # opened ahead: the ask that needs it will say
            return
        if isinstance(error, ssl.SSLError):
            self._finish(trip, Outcome.TLS, f"no trusted connection to {self._target.origin}: {why(error)}")
        else:
            self._undialled(trip, error)

    def _plain(self, lane: Lane, data: bytes) -> bytes:
        """Empty where nothing is whole (a session ticket, half a record), and where the session broke."""
        try:
            return lane.connection.plain(data)
        except ssl.SSLError as error:
            if lane.trip is None:
                self.lanes.drop(lane)
            else:
                self._finish(lane.trip, Outcome.TLS, f"TLS failed inside the answer: {why(error)}")
            return b""

    def _ended(self, lane: Lane, ending: Ending) -> None:
        """The connection is gone: an idle one is forgotten, a used one that gave no byte is replaced once."""
        trip = lane.trip
        if trip is None:
            self.lanes.drop(lane)
        elif lane.waited and not (trip.reads or trip.resent) and isnan(trip.answer.last_s):
            self.lanes.drop(lane)
            trip.fresh = trip.resent = True
            self.own_error.noted["requests sent again: the server had closed the kept-alive connection"] += 1
            self._dial(trip)
        else:
            trip.ending = ending
            self.lanes.drop(lane)
            if not trip.queued:
                trip.queued = True
                self._to_parse.append(trip)

    def _parse_until(self, until_s: float) -> None:
        to_parse = self._to_parse
        while to_parse:
            trip = to_parse.popleft()
            if trip not in self.under_way:
                continue
            if trip.parse(PARSE_AT_ONCE):
                self._finish(trip, None, "")
            elif trip.reads:
                to_parse.append(trip)
            else:
                trip.queued = False
            if monotonic() > until_s:
                return

    def _finish(self, trip: Trip, outcome: Outcome | None, reason: str) -> None:
        """One exchange is over: its connection is kept or closed, and those who wait are told."""
        lane = self.under_way.pop(trip)
        exchange = trip.exchange(outcome, reason)
        if exchange.reason:
            exchange = replace(exchange, reason=hidden(exchange.reason, self._secrets))
        if lane is not None and lane.trip is trip:
            if outcome is None and trip.ending is None and not trip.reads and self._reusable(trip):
                lane.served += 1
                self.lanes.keep(lane)
            else:
                self.lanes.drop(lane)
        self.own_error.read(trip.lags, trip.merged_s)
        self._schedule.ended(exchange)
        self._on_end(exchange)

    def _reusable(self, trip: Trip) -> bool:
        http = trip.answer.http
        return self._target.keep_alive and http.complete and http.keep_alive and not isnan(trip.sent_s)

    def _sweep(self) -> None:
        """Now and then: what has waited too long ends."""
        now_s = self.now()
        timeouts = self._target.timeouts
        if now_s - self._swept_s < sweep_interval_s(timeouts):
            return
        self._swept_s = now_s
        for trip in list(self.under_way):
            reason = overdue(trip, now_s, timeouts)
            if reason:
                self._finish(trip, Outcome.TIMED_OUT, reason)
