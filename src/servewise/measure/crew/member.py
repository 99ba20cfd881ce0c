"""One worker of a crew: what it was told, what it has under way, and what it said last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from servewise.measure.ask import Ask
from servewise.measure.crew.seat import Host, Seat
from servewise.measure.drive.frames import Frames, framed
from servewise.measure.drive.job import Begun, Done, Ended, Job, Ready, Stop, Taken
from servewise.measure.drive.packing import unpacked
from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome
from servewise.measure.sending import Sending


class Member:
    """``done`` is what it said at the end of its share; ``end`` how it was lost, empty while it is there."""

    def __init__(self, host: Host, seat: Seat) -> None:
        self.host, self._seat = host, seat
        self._frames = Frames()
        self._under_way: dict[int, Taken] = {}
        self.ready = False
        self.done: Done | None = None
        self.end = ""
        self.requests = self.completed = self.lost = 0

    @property
    def under_way(self) -> int:
        """Asks that it took and that have not ended, as far as it said."""
        return len(self._under_way)

    def fileno(self) -> int:
        """Where it is heard."""
        return self._seat.fileno()

    def begin(self, job: Job) -> None:
        """Give it its share of a run."""
        self.done = None
        self.requests = self.completed = self.lost = 0
        self.tell(job)

    def tell(self, message: Job | Stop) -> None:
        """Tell it something; one that is gone is noticed when it is heard."""
        self._seat.tell(framed(message))

    def listen(self, on_end: Callable[[Exchange], None]) -> None:
        """Hear what it says; where it is gone, what it had under way ends as lost."""
        data = self._seat.hear()
        if not data:
            self._lose(on_end)
            return
        for message in self._frames.feed(data):
            self._take(message, on_end)

    def _take(self, message: object, on_end: Callable[[Exchange], None]) -> None:
        if isinstance(message, Ended):
            for each in message.exchanges:
                self._end(unpacked(each), on_end)
        elif isinstance(message, Begun):
            self._under_way |= {each.serial: each for each in message.asks}
        elif isinstance(message, Done):
            self.done = message
        elif isinstance(message, Ready):
            self.ready = True

    def _end(self, exchange: Exchange, on_end: Callable[[Exchange], None]) -> None:
        self._under_way.pop(exchange.ask.serial, None)
        self.requests += 1
        self.completed += exchange.outcome is Outcome.COMPLETED
        self.lost += exchange.outcome is Outcome.LOST
        on_end(exchange)

    def _lose(self, on_end: Callable[[Exchange], None]) -> None:
        self.end = self._seat.end or "gone"
        note = f"{self.host.name}: {self.end}: how well it kept up is not known"
        self.done = Done(replace(Sending(workers=1), notes=(note,)))
        for taken in list(self._under_way.values()):
            self._end(_lost(taken, f"{self.host.name}: {self.end}"), on_end)


def _lost(taken: Taken, reason: str) -> Exchange:
    ask = Ask(
        serial=taken.serial,
        body=b"",
        output_tokens=taken.output_tokens,
        prompt_tokens=taken.prompt_tokens,
        group=taken.group,
        turn=taken.turn,
    )
    return Exchange(ask=ask, outcome=Outcome.LOST, reason=reason, scheduled_s=taken.scheduled_s, retries=taken.retries)
