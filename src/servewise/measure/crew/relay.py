"""What stands on another host between its worker processes and the run: bytes in, bytes out, and its clock."""

from __future__ import annotations

import select
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from servewise.executing.build import this_build
from servewise.measure.crew.here import WorkerProcess

_BOOT, _NETWORK = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/net")


class Heard(NamedTuple):
    """What a seat said; ``data`` is empty where it is gone, and ``end`` says how."""

    seat: int
    data: bytes
    end: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """The host: its name, what it runs, and a mark that two hosts have alike only if their loopback is the same."""

    name: str
    build: Mapping[str, str]
    loopback: str


class Relay:
    """The worker processes of one host. Calls may come from several threads, one each for the clock and the seats.

    The workers are processes of their own, so that their loops share no interpreter with whatever carries the calls.
    ``ahead_s``: set the host's clock ahead (for tests).
    """

    def __init__(self, workers: int, ahead_s: float = 0.0) -> None:
        self._ahead_s = ahead_s
        self._seats = [WorkerProcess(ahead_s) for _ in range(workers)]
        self._gone: set[int] = set()

    def about(self) -> About:
        """Which host this is."""
        return About(socket.gethostname(), dict(this_build()), loopback())

    def clock(self) -> float:
        """This host's monotonic clock [s]."""
        return monotonic() + self._ahead_s

    def tell(self, seat: int, data: bytes) -> None:
        """Tell a worker something."""
        self._seats[seat].tell(data)

    def hear(self, patience_s: float) -> list[Heard]:
        """What the workers said, as soon as there is something; empty after ``patience_s``."""
        seats = {seat.fileno(): place for place, seat in enumerate(self._seats) if place not in self._gone}
        found = []
        for fileno in select.select(list(seats), [], [], patience_s)[0]:
            place = seats[fileno]
            data = self._seats[place].hear()
            if not data:
                self._gone.add(place)
            found.append(Heard(place, data, "" if data else self._seats[place].end))
        return found

    def close(self) -> None:
        """End the workers."""
        for seat in self._seats:
            seat.close()


def loopback() -> str:
    """Whose 127.0.0.1 it is: this start of the machine and its network; its name where the kernel tells neither."""
    try:
        return f"{_BOOT.read_text().strip()} {_NETWORK.stat().st_ino}"
    except OSError:
        return socket.gethostname()
