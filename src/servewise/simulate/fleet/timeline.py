"""What happens when: one heap of events in order of time, then kind, then serial."""

from __future__ import annotations

from heapq import heappush
from typing import Any

# At one time: steps end first, then KV arrives, servers die, come (back), are scaled, and policies' own hours strike;
# arrivals and planning follow when all of these are done.
STEP, MOVED, FAILS, COMES, SCALES, WAKES = range(6)

Event = tuple[float, int, int, int, Any]  # time [s], kind, serial, version, whom it concerns


class Timeline:
    """Events to come. An entry whose ``version`` is no longer its subject's is stale: whoever takes it drops it.

    ``events`` is a heap (``heapq``), read by the core's loop itself, which runs once an event.
    """

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, at_s: float, kind: int, serial: int, version: int, subject: Any) -> None:
        """``subject`` is for whoever handles ``kind``; (time, kind, serial, version) must tell all entries apart."""
        heappush(self.events, (at_s, kind, serial, version, subject))
