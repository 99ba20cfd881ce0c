"""The asks of a run one after another, built ahead of their time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from servewise.measure.ask import Ask
from servewise.workload.request import Request

AHEAD, AHEAD_BYTES = 1_024, 2**24  # a second of work at most; more are built while nothing is due
Source = Callable[[], Iterator[Request]]


@dataclass(frozen=True, slots=True)
class Deal:
    """Whose requests are whose: those whose serial, divided by ``of``, leaves a remainder in ``mine``."""

    of: int = 1
    mine: range = range(1)

    def takes(self, request: Request) -> bool:
        """Whether ``request`` is among them."""
        return request.serial % self.of in self.mine

    def __post_init__(self) -> None:
        assert self.of > 0, "requests are dealt among at least one"


ALL = Deal()


class Supply:
    """Requests of ``source`` in its order, those of ``deal`` alone, each made into an ask by ``make`` ahead of time.

    A pickled supply starts from its beginning again.
    """

    def __init__(self, source: Source, make: Callable[[Request], Ask], deal: Deal = ALL) -> None:
        self._source, self._make, self._deal = source, make, deal
        self._left: Iterator[Request] | None = None
        self._ready: deque[tuple[float, Ask]] = deque()
        self._bytes = 0

    def __reduce__(self) -> tuple[type[Supply], tuple[Source, Callable[[Request], Ask], Deal]]:
        return type(self), (self._source, self._make, self._deal)

    def next_s(self) -> float | None:
        """When the next request arrives [s]; None at the end. The first call builds many ahead."""
        if self._left is None:
            self._left = filter(self._deal.takes, self._source()) if self._deal.mine else iter(())
            while self.build_one():
                pass
        if not self._ready:
            self.build_one()
        return self._ready[0][0] if self._ready else None

    def take(self) -> Ask:
        """The next ask; one must be left."""
        ask = self._ready.popleft()[1]
        self._bytes -= len(ask.body)
        return ask

    def build_one(self) -> bool:
        """Make one more ahead, for a moment when nothing is due; False where there are enough, or no more."""
        if self._left is None or (self._ready and (len(self._ready) >= AHEAD or self._bytes >= AHEAD_BYTES)):
            return False
        request = next(self._left, None)
        if request is None:
            return False
        ask = self._make(request)
        self._ready.append((request.arrival_s, ask))
        self._bytes += len(ask.body)
        return True

    def dealt(self, deal: Deal) -> Supply:
        """The part of it that is ``deal``'s; a supply is dealt once."""
        assert self._deal == ALL, "a supply is dealt once"
        return Supply(self._source, self._make, deal)
