"""Who is served and who waits: a fixed number of servers with one queue in order of arrival."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Job = TypeVar("Job")


class Slots(Generic[Job]):
    """``slots`` jobs run at once (None: all), the rest wait; a freed slot goes to the longest waiting."""

    def __init__(self, slots: int | None) -> None:
        self._slots = slots
        self.running = 0
        self._waiting: deque[Job] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether a job that came now would wait."""
        return self._slots is not None and self.running >= self._slots

    def enter(self, job: Job) -> bool:
        """Whether ``job`` runs at once; else it waits."""
        if self.full:
            self._waiting.append(job)
            return False
        self.running += 1
        return True

    def leave(self) -> Job | None:
        """A running job is over; the one that takes its slot."""
        if self._waiting:
            return self._waiting.popleft()
        self.running -= 1
        return None

    def give_up(self, job: Job) -> bool:
        """``job`` waits no more; False where it did not wait."""
        try:
            self._waiting.remove(job)
        except ValueError:
            return False
        return True
