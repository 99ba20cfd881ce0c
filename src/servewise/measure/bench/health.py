"""When to give up on a run: the server is gone, or answers nothing but errors."""

from __future__ import annotations

from collections.abc import Callable

from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome

GONE_S = 5.0
FEWEST_REFUSED = 3
FEWEST_FAILED = 100
GONE = (Outcome.REFUSED, Outcome.RESET, Outcome.TLS)


class Health:
    """Looks at every exchange; ``reason`` says why the run should end, empty while it should not.

    Gone: for five seconds, at least three times, and since the last success, nothing but refused and reset connections.
    Failing: the first hundred requests of a run all failed.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.reason = ""
        self._refused = 0
        self._since_s = 0.0
        self._failed = 0
        self._completed = False
        self._last = Outcome.COMPLETED

    def see(self, exchange: Exchange) -> None:
        """The next exchange."""
        if exchange.outcome is Outcome.COMPLETED:
            self._completed, self._refused = True, 0
            return
        if exchange.outcome in (Outcome.CANCELLED, Outcome.LOST):
            return
        self._failed += 1
        self._last = exchange.outcome
        said = f"{exchange.outcome.value}: {exchange.reason}" if exchange.reason else exchange.outcome.value
        self._look_for_gone(exchange, said)
        if not self._completed and self._failed >= FEWEST_FAILED:
            self.reason = self.reason or f"the first {self._failed} requests all failed, the last with {said}"

    def over(self) -> None:
        """No more exchanges: a server that refused the last three connections is gone, however fast they went."""
        if self._refused >= FEWEST_REFUSED and self._last is Outcome.REFUSED:
            self.reason = self.reason or "the server is gone: it refused the last connections of the run"

    def _look_for_gone(self, exchange: Exchange, said: str) -> None:
        if exchange.outcome not in GONE:
            self._refused = 0
            return
        self._refused += 1
        now = self._clock()
        if self._refused == 1:
            self._since_s = now
        if self._refused >= FEWEST_REFUSED and now - self._since_s >= GONE_S:
            self.reason = self.reason or f"the server is gone: {said}"
