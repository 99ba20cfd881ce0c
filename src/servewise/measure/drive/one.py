"""One request alone: a probe of a server, or a lesson from it."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from servewise.measure.ask import Ask
from servewise.measure.drive.drive import drive
from servewise.measure.drive.terms import Terms
from servewise.measure.exchange import Exchange
from servewise.measure.schedule import Due
from servewise.measure.target import Target


class Once:
    """A schedule of one ask, due at once."""

    def __init__(self, ask: Ask) -> None:
        self._ask: Ask | None = ask

    def next_due_s(self) -> float | None:
        """At once, until it was taken."""
        return 0.0 if self._ask else None

    def take(self, now_s: float) -> Due | None:
        """The ask, once."""
        ask, self._ask = self._ask, None
        return Due(ask, now_s) if ask else None

    def ended(self, exchange: Exchange) -> None:
        """Nothing follows."""

    @property
    def finished(self) -> bool:
        """Whether it was taken."""
        return self._ask is None

    def split(self, workers: int) -> Sequence[Once]:  # noqa: ARG002 - the seam's argument
        """It cannot be divided: all of it goes to the first."""
        return [self]


def send_one(ask: Ask, target: Target, *, keep_text: bool = True, keep_logprobs: bool = False) -> Exchange:
    """Send ``ask`` now and wait for its end, whatever it is; times count from now."""
    found: list[Exchange] = []
    drive(
        Once(ask),
        target,
        start_s=monotonic(),
        on_end=found.append,
        terms=Terms(keep_text=keep_text, keep_logprobs=keep_logprobs),
    )
    return found[0]
