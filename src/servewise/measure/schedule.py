"""The seam between what load is wanted and who sends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange


class Due(NamedTuple):
    """An ask and when it should leave [s from the run's start].

    ``ready_s`` is when it may leave at the earliest where that is later than scheduled (a cap on what is in flight, the
    wait after a 429): the client is late by sent - ready, the user waits from ``scheduled_s``. ``retries`` is how many
    attempts this one repeats; it goes into ``Exchange.retries``.
    """

    ask: Ask
    scheduled_s: float
    ready_s: float | None = None
    retries: int = 0


class Schedule(Protocol):
    """What to send when. The sender asks it, and tells it what ended; it has no clock and opens no socket.

    Open loops know all their times beforehand; closed loops, sessions and the retries of a 429 wait for an end.
    It is picklable, so that a worker process can be given one.
    """

    def next_due_s(self) -> float | None:
        """When the next ask is due; None while there is none until something ends (or ever, see ``finished``)."""
        ...

    def take(self, now_s: float) -> Due | None:
        """The next ask that is due at ``now_s``, once; None where there is none yet."""
        ...

    def ended(self, exchange: Exchange) -> None:
        """An ask that was taken has ended, however it ended."""
        ...

    @property
    def finished(self) -> bool:
        """Whether nothing more will ever be due, even when what is under way ends."""
        ...

    def split(self, workers: int) -> Sequence[Schedule]:
        """The same load over that many senders: together they send what this one would, each with its own asks."""
        ...
