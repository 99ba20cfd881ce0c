"""A sender and its server in virtual time: exact services, no sockets, no waiting."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from servewise.measure.ask import Ask
from servewise.measure.drive.terms import USUAL, Terms
from servewise.measure.exchange import Arrival, Exchange
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due, Schedule
from servewise.measure.sending import Sending


@dataclass
class VirtualServer:
    """Every answer takes ``ttft_s`` and ``gap_s`` a further token; ``outcome_of`` may say that one fails.

    ``slots``: so many are served at once, the others wait. ``after``: called with the number of requests that ended.
    """

    ttft_s: float = 0.25
    gap_s: float = 0.125
    tokens: int = 5
    slots: int | None = None
    outcome_of: Callable[[Ask], Outcome] = lambda _: Outcome.COMPLETED
    after: Callable[[int], None] = lambda _: None
    cached_tokens: int | None = None
    asks: list[Ask] = field(default_factory=list)
    runs: int = 0
    _ended: int = 0

    def __call__(
        self,
        schedule: Schedule,
        *,
        start_s: float,
        on_end: Callable[[Exchange], None],
        stop: Callable[[], bool] | None = None,
        terms: Terms = USUAL,
    ) -> Sending:
        """As a driver does, in no time at all."""
        self.runs += 1
        now, serial = 0.0, 0
        free = [0.0] * (self.slots or 0)
        under_way: list[tuple[float, int, Exchange]] = []
        while True:
            over = (terms.until_s is not None and now >= terms.until_s) or (stop is not None and stop())
            while not over and (due := schedule.take(now)) is not None:
                exchange = self._answered(due, now, free)
                heapq.heappush(under_way, (exchange.end_s, serial, exchange))
                serial += 1
            due_s = None if over else schedule.next_due_s()
            if not under_way and due_s is None:
                return Sending(wall_s=now, cpu_s=0.0)
            if under_way and (due_s is None or under_way[0][0] <= due_s):
                now, _, exchange = heapq.heappop(under_way)
                schedule.ended(exchange)
                on_end(exchange)
                self._ended += 1
                self.after(self._ended)
            else:
                assert due_s is not None
                now = due_s

    def _answered(self, due: Due, now: float, free: list[float]) -> Exchange:
        self.asks.append(due.ask)
        outcome = self.outcome_of(due.ask)
        begins = max(now, heapq.heappop(free)) if self.slots else now
        first = begins + self.ttft_s
        times = [first + place * self.gap_s for place in range(self.tokens)]
        if self.slots:
            heapq.heappush(free, times[-1])
        fine = outcome is Outcome.COMPLETED
        more: dict[str, Any] = (
            {"arrivals": tuple(Arrival(time, 1) for time in times)} if fine else {"reason": "made up"}
        )
        return Exchange(
            ask=due.ask,
            outcome=outcome,
            scheduled_s=due.scheduled_s,
            sent_s=now,
            end_s=times[-1] if fine else now + 0.125,
            prompt_tokens=due.ask.prompt_tokens,
            cached_tokens=self.cached_tokens,
            output_tokens=self.tokens if fine else None,
            counted_by="usage",
            stamped="kernel",
            retries=due.retries,
            **more,
        )
