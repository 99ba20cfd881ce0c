"""A host that is reached by calls: its seats look to the crew as those of this machine do."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

from servewise.measure.crew.clock_offset import Ping
from servewise.measure.crew.here import PIECE_BYTES
from servewise.measure.crew.relay import About, Heard

PATIENCE_S = 0.5  # a call that waits for words comes back after this, so that a silent host is noticed


class LinkLost(Exception):
    """The host cannot be reached any more; the text says why."""


class Link(Protocol):
    """Calls to a host's ``Relay``, from several threads; each raises LinkLost."""

    @property
    def name(self) -> str:
        """The host, for people."""
        ...

    def clock(self) -> float:
        """Its clock now."""
        ...

    def tell(self, seat: int, data: bytes) -> None:
        """Tell a worker something; back when it has it."""
        ...

    def hear(self, patience_s: float) -> Sequence[Heard]:
        """What its workers said."""
        ...

    def close(self) -> None:
        """End it; raises nothing."""
        ...


class RemoteSeat:
    """A worker process of another host: what it says comes through a socket pair, which a thread fills."""

    def __init__(self, link: Link, place: int) -> None:
        self._link, self._place = link, place
        self._inbox, self._outbox = socket.socketpair()
        self.end = ""

    def fileno(self) -> int:
        """Where it is heard."""
        return self._inbox.fileno()

    def tell(self, data: bytes) -> None:
        """Tell it something; a link that is lost is noticed by who listens."""
        with contextlib.suppress(LinkLost):
            self._link.tell(self._place, data)

    def hear(self) -> bytes:
        """What it says; empty when it is gone."""
        return self._inbox.recv(PIECE_BYTES)

    def said(self, heard: Heard) -> None:
        """Called by the thread that listens."""
        if heard.data:
            self._outbox.sendall(heard.data)
        else:
            self.gone(heard.end)

    def gone(self, why: str) -> None:
        """It will say nothing more."""
        self.end = self.end or why
        with contextlib.suppress(OSError):
            self._outbox.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the sockets."""
        self._inbox.close()
        self._outbox.close()


class RemoteHost:
    """Another host with so many workers, over a ``link``; ``about`` it where that is known."""

    clock_shared = False

    def __init__(self, link: Link, workers: int, about: About | None = None) -> None:
        self.name, self._link, self.about = link.name, link, about
        self.seats = [RemoteSeat(link, place) for place in range(workers)]
        self._closed = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def pings(self, count: int) -> list[Ping]:
        """Readings of its clock; none where it is gone."""
        found = []
        with contextlib.suppress(LinkLost):
            for _ in range(count):
                asked_s = monotonic()
                found.append(Ping(asked_s, self._link.clock(), monotonic()))
        return found

    def close(self) -> None:
        """End its workers and the link."""
        self._closed = True
        for seat in self.seats:
            seat.gone("closed")
        self._link.close()
        self._thread.join()
        for seat in self.seats:
            seat.close()
        self.seats.clear()

    def _listen(self) -> None:
        seats = list(self.seats)
        try:
            while not self._closed:
                for heard in self._link.hear(PATIENCE_S):
                    seats[heard.seat].said(heard)
        except LinkLost as error:
            why = str(error)
        except OSError:  # nobody listens here any more
            why = "closed"
        else:
            why = "closed"
        for seat in seats:
            seat.gone(why)
        if not self._closed:
            self._link.close()  # what is left of it must not go on sending
