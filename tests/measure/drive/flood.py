"""A closed loop of so many streams, for tests of those who send."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange
from servewise.measure.schedule import Due


class Flood:
    """``serials`` are sent by ``streams`` at once; each end lets the next one go."""

    def __init__(self, serials: Sequence[int], streams: int, body: bytes = b"{}") -> None:
        self._left = [Ask(serial=serial, body=body, output_tokens=2) for serial in serials]
        self._free = streams

    def next_due_s(self) -> float | None:
        """At once, where a stream is free."""
        return 0.0 if self._free and self._left else None

    def take(self, now_s: float) -> Due | None:
        """The next one, where a stream is free."""
        if not (self._free and self._left):
            return None
        self._free -= 1
        return Due(self._left.pop(0), now_s)

    def ended(self, exchange: Exchange) -> None:
        """A stream is free again."""
        self._free += 1

    @property
    def finished(self) -> bool:
        """Whether all were taken."""
        return not self._left

    def split(self, workers: int) -> list[Flood]:
        """Every nth ask, and a share of the streams, to each."""
        serials = [ask.serial for ask in self._left]
        return [Flood(serials[i::workers], max(1, self._free // workers)) for i in range(workers)]


class Breaking(Flood):
    """A schedule with a fault of its own."""

    def ended(self, exchange: Exchange) -> None:
        """Fail."""
        raise ValueError("no more")

    def split(self, workers: int) -> list[Flood]:
        """One breaks, the others do not."""
        return [Breaking([0], 1), *super().split(workers)[1:]]
