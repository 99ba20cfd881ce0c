"""All connections of one sender: those in use, those that wait, and one that is opened ahead of its need."""

from __future__ import annotations

import ssl

from servewise.measure.drive.lane import Lane, Phase
from servewise.measure.drive.trip import Trip
from servewise.measure.target import Target
from servewise.measure.wire.addresses import addresses_of
from servewise.measure.wire.connection import Address
from servewise.measure.wire.poller import READ, WRITE, Poller
from servewise.measure.wire.tls import Tls, tls_context

AHEAD_S = 2.0  # a connection is opened so long before it may be needed
AHEAD_LOST = 3  # after so many that were lost unused, none is opened ahead any more


class Lanes:
    """Connections by descriptor. ``no_address`` is one line where the host is not known."""

    def __init__(self, target: Target) -> None:
        self.poller = Poller()
        self.by_fd: dict[int, Lane] = {}
        self.no_address = ""
        self.addresses: tuple[Address, ...] = ()
        self._target = target
        self._context: ssl.SSLContext | None = tls_context(target) if target.scheme == "https" else None
        self._idle: list[Lane] = []
        self._ahead: Lane | None = None
        self._ahead_lost = 0
        try:
            self.addresses = addresses_of(target)
        except (OSError, UnicodeError) as error:
            self.no_address = f"no such host {target.host!r}: {why(error)}"

    def open(self, trip: Trip | None, attempt: int = 0) -> Lane:
        """Begin a connection to the host's addresses in turn. Raises OSError."""
        address = self.addresses[attempt % len(self.addresses)]
        lane = Lane(address, Tls(self._context, self._target.host) if self._context else None, trip)
        self.by_fd[lane.fd] = lane
        self.poller.register(lane.fd, WRITE)
        return lane

    def open_ahead(self, in_s: float) -> None:
        """A request is due ``in_s`` from now: have a connection ready, so that opening one is no part of lateness."""
        wanted = 0 < in_s < AHEAD_S and self._target.keep_alive and not (self._idle or self._ahead)
        if wanted and self.addresses and self._ahead_lost < AHEAD_LOST:
            try:
                self._ahead = self.open(None)
            except (OSError, ValueError):  # the request that needs it will say
                self._ahead_lost = AHEAD_LOST

    def take(self, trip: Trip) -> Lane | None:
        """A connection that is there, or on its way already, for ``trip``; the last one used is the first."""
        while self._idle:
            lane = self._idle.pop()
            if lane.connection.spoken():  # closed meanwhile, or with bytes that answer no request
                self.drop(lane)
                continue
            trip.fresh = not lane.served
            lane.trip = trip
            return lane
        if self._ahead is None:
            return None
        lane, self._ahead = self._ahead, None
        lane.trip = trip
        return lane

    def keep(self, lane: Lane) -> None:
        """Keep a connection for a later request."""
        if lane is self._ahead:
            self._ahead = None
        lane.phase, lane.trip, lane.waited = Phase.READING, None, True
        self._idle.append(lane)

    def await_bytes(self, lane: Lane, phase: Phase) -> None:
        """From now on, wait for bytes to come."""
        self.poller.modify(lane.fd, READ)
        lane.phase = phase

    def await_room(self, lane: Lane) -> None:
        """From now on, wait until more can be written; the server may answer before it has read all."""
        self.poller.modify(lane.fd, READ | WRITE)
        lane.phase = Phase.WRITING

    def drop(self, lane: Lane) -> None:
        """Close a connection, whatever it was."""
        del self.by_fd[lane.fd]
        self.poller.unregister(lane.fd)
        if lane in self._idle:
            self._idle.remove(lane)
        if lane.trip is None and not lane.served:
            self._ahead_lost += 1
        if lane is self._ahead:
            self._ahead = None
        lane.trip = None
        lane.close()

    def close(self) -> None:
        """Close all."""
        for lane in list(self.by_fd.values()):
            self.drop(lane)
        self.poller.close()


def why(error: Exception) -> str:
    """What the system says of an error."""
    told = getattr(error, "strerror", None) or error
    return str(told.args[0] if isinstance(told, Exception) and len(told.args) == 1 else told)
