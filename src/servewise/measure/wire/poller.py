"""Waiting for many sockets and for a moment, to within a fraction of a millisecond."""

from __future__ import annotations

import select
import time
from typing import Any

READ, WRITE = 0x001, 0x004  # POLLIN and POLLOUT; EPOLLIN and EPOLLOUT have the same values
ERROR = 0x008  # POLLERR; a time stamp in the error queue shows so too
SPIN_S = 100e-6
COARSE_S = 2e-3
MOST_AT_ONCE = 64  # so that a due request waits for few reads


class Poller:
    """``epoll`` where there is one, else ``poll`` (which spins the last millisecond); level-triggered.

    ``epoll_wait`` counts in milliseconds. A nearer moment is waited for with ``select`` on the epoll descriptor
    (microseconds), and the last 100 us are spun, since a sleeping process wakes 50 us late or more.
    """

    def __init__(self) -> None:
        self._epoll: Any = select.epoll() if hasattr(select, "epoll") else None
        self._poll: Any = self._epoll or select.poll()
        self.register = self._poll.register
        self.modify = self._poll.modify
        self.unregister = self._poll.unregister

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        """Descriptors with what is ready there; empty after ``seconds``."""
        if self._epoll is None:
            found: list[tuple[int, int]] = self._poll.poll(int(max(0.0, seconds) * 1e3))
            return found
        if seconds > COARSE_S:
            return self._ready(int(seconds * 1e3) * 1e-3 - 1e-3)
        if seconds <= 0:
            return self._ready(0)
        return self._soon(seconds)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._epoll is not None:
            self._epoll.close()

    def _soon(self, seconds: float) -> list[tuple[int, int]]:
        until = time.monotonic() + seconds
        if seconds > SPIN_S:
            select.select([self._epoll], [], [], seconds - SPIN_S)
            return self._ready(0)
        while not (ready := self._ready(0)) and time.monotonic() < until:
            pass
        return ready

    def _ready(self, seconds: float) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = self._epoll.poll(seconds, MOST_AT_ONCE)
        return found
