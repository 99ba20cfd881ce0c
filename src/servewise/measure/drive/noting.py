"""A schedule that tells of each ask that is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from servewise.measure.exchange import Exchange
from servewise.measure.schedule import Due, Schedule


class Noting:
    """``inner``, with ``note`` called for each ask that it gives out."""

    def __init__(self, inner: Schedule, note: Callable[[Due], None]) -> None:
        self._inner, self._note = inner, note
        self.next_due_s = inner.next_due_s
        self.ended: Callable[[Exchange], None] = inner.ended

    def take(self, now_s: float) -> Due | None:
        """The inner schedule's, noted."""
        due = self._inner.take(now_s)
        if due is not None:
            self._note(due)
        return due

    @property
    def finished(self) -> bool:
        """The inner schedule's."""
        return self._inner.finished

    def split(self, workers: int) -> Sequence[Schedule]:
        """The inner schedule's."""
        return self._inner.split(workers)
