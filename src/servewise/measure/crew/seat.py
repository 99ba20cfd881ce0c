"""The seam between a crew and where its worker processes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from servewise.measure.crew.clock_offset import Ping


class Seat(Protocol):
    """One worker process, here or on another host, told and heard in frames."""

    def fileno(self) -> int:
        """What is ready to read when it has said something, or is gone."""
        ...

    def tell(self, data: bytes) -> None:
        """Tell it something. One that is gone is noticed when it is heard."""
        ...

    def hear(self) -> bytes:
        """What it says; empty when it is gone."""
        ...

    @property
    def end(self) -> str:
        """Of one that is gone: what is known of its end."""
        ...


class Host(Protocol):
    """A machine with worker processes."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def seats(self) -> Sequence[Seat]:
        """Its worker processes."""
        ...

    def pings(self, count: int) -> list[Ping]:
        """Readings of its clock; none where it is this process's own, or where the host is gone."""
        ...

    @property
    def clock_shared(self) -> bool:
        """Whether its clock is this process's own."""
        ...

    def close(self) -> None:
        """End its worker processes."""
        ...
