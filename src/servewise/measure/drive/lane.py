"""One connection and the trip that is on it."""

from __future__ import annotations

from enum import IntEnum

from servewise.measure.drive.trip import Trip
from servewise.measure.wire.connection import Address, Connection
from servewise.measure.wire.tls import Tls


class Phase(IntEnum):
    """What a lane's next readiness means."""

    CONNECTING = 0
    SECURING = 1
    WRITING = 2
    READING = 3


class Lane:
    """A connection; ``trip`` is None while it waits for its next request.

    ``served``: answers it has carried. ``waited``: it has lain idle, so that the server may have closed it meanwhile.
    """

    __slots__ = ("connection", "encrypted", "fd", "phase", "reader", "served", "trip", "waited")

    def __init__(self, address: Address, tls: Tls | None, trip: Trip | None) -> None:
        self.connection = Connection(address, tls)
        self.reader = self.connection.reader
        self.encrypted = self.connection.encrypted
        self.fd = self.connection.sock.fileno()
        self.phase = Phase.CONNECTING
        self.served = 0
        self.waited = False
        self.trip = trip

    def close(self) -> None:
        """Close the connection."""
        del self.reader
        self.connection.close()
