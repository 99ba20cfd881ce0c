"""What happens when: one heap of events in order of time, then kind, then serial."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import Any

# At one time: steps end first, then KV arrives, servers die, come (back), are scaled, and policies' own hours strike;
# arrivals and planning follow when all of these are done.
STEP, MOVED, FAILS, COMES, SCALES, WAKES = range(6)

Event = tuple[float, int, int, int, Any]  # time [s], kind, serial, version, whom it concerns


class Timeline:
    """Events to come. An entry whose ``version`` is no longer its subject's is stale: whoever takes it drops it."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: list[Event] = []

    @property
    def next_s(self) -> float:
        """When the next event, stale or not, is due; infinity: none is."""
        return self._events[0][0] if self._events else inf

    def add(self, at_s: float, kind: int, serial: int, version: int, subject: Any) -> None:
        """``subject`` is for whoever handles ``kind``; (time, kind, serial, version) must tell all entries apart."""
        heappush(self._events, (at_s, kind, serial, version, subject))

    def take(self) -> Event:
        """The next event."""
        return heappop(self._events)
