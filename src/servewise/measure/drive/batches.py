"""What a worker tells of its asks, many together."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from servewise.measure.drive.job import Begun, Ended, Taken
from servewise.measure.drive.packing import Packed, packed
from servewise.measure.exchange import Exchange
from servewise.measure.schedule import Due

BATCH = 64
BATCH_S = 0.05


class Batches:
    """Gathers what began and what ended, and says it together, at the latest ``BATCH_S`` after the first.

    What has begun and ended meanwhile is told as ended alone.
    """

    def __init__(self, say: Callable[[object], None]) -> None:
        self._say = say
        self._begun: dict[int, Taken] = {}
        self._ended: list[Packed] = []
        self._since_s = 0.0

    def begun(self, due: Due) -> None:
        """An ask was taken."""
        if due.retries and self._ended:  # the end of its last attempt may be among them, and comes first
            self.flush()
        self._first()
        ask = due.ask
        self._begun[ask.serial] = Taken(
            ask.serial, due.scheduled_s, due.retries, ask.output_tokens, ask.prompt_tokens, ask.group, ask.turn
        )

    def ended(self, exchange: Exchange) -> None:
        """One is over."""
        self._first()
        self._begun.pop(exchange.ask.serial, None)
        self._ended.append(packed(exchange))
        if len(self._ended) >= BATCH:
            self.flush()

    def flush_old(self) -> None:
        """Say them if they have waited."""
        if (self._ended or self._begun) and monotonic() - self._since_s > BATCH_S:
            self.flush()

    def flush(self) -> None:
        """Say them."""
        if self._begun:
            self._say(Begun(list(self._begun.values())))
            self._begun = {}
        if self._ended:
            self._say(Ended(self._ended))
            self._ended = []

    def _first(self) -> None:
        if not (self._ended or self._begun):
            self._since_s = monotonic()
