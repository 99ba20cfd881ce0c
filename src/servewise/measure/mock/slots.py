"""Who is served and who waits: a fixed number of servers with one queue in order of arrival."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import inf
from typing import Generic, TypeVar

Job = TypeVar("Job")


class Slots(Generic[Job]):
    """``slots`` jobs run at once (None: all), the rest wait; a freed slot goes to the longest waiting."""

    def __init__(self, slots: int | None) -> None:
        self._free_since = None if slots is None else [-inf] * slots
        self.running = 0
        self._waiting: deque[Job] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether a job that came now would wait."""
        return self._free_since is not None and not self._free_since

    def enter(self, job: Job) -> float | None:
        """Since when the slot was free that ``job`` takes (the one free for longest); None where it waits."""
        if self.full:
            self._waiting.append(job)
            return None
        self.running += 1
        return -inf if self._free_since is None else heappop(self._free_since)

    def leave(self, at_s: float) -> Job | None:
        """A running job is over at ``at_s``; the one that takes its slot then."""
        if self._waiting:
            return self._waiting.popleft()
        self.running -= 1
        if self._free_since is not None:
            heappush(self._free_since, at_s)
        return None

    def give_up(self, job: Job) -> None:
        """``job`` waits no more."""
        self._waiting.remove(job)
