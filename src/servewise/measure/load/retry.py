"""Honour a 429: the same request again after the time that the server names, so often at most, and counted."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from servewise.measure.exchange import Exchange
from servewise.measure.load.ends import ended_s
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due, Schedule
from servewise.workload.streams import stream


@dataclass(frozen=True, slots=True)
class RetryRule:
    """``most`` repeats of a request. The wait is what Retry-After says, up to ``longest_s``: above it, none is made.

    Without Retry-After it is a time drawn evenly from 0 to ``first_s`` x 2^n, at most ``longest_s`` ("full jitter",
    AWS Architecture Blog, Exponential Backoff And Jitter, 2015).
    """

    most: int = 3
    first_s: float = 1.0
    longest_s: float = 60.0
    seed: int = 0

    def wait_s(self, exchange: Exchange, retries: int) -> float | None:
        """How long to wait after ``exchange``, which ``retries`` came before; None where it is given up."""
        if exchange.outcome is not Outcome.RATE_LIMITED or retries >= self.most:
            return None
        if exchange.retry_after_s is not None:
            return max(exchange.retry_after_s, 0.0) if exchange.retry_after_s <= self.longest_s else None
        most_s = min(self.first_s * 2.0**retries, self.longest_s)
        return most_s * float(stream(self.seed, "retries", exchange.ask.serial, retries).random())


class _Waiting(NamedTuple):
    """A repeat: when it may leave, its serial (which orders ties, and of which there is one), and what is due."""

    ready_s: float
    serial: int
    due: Due


class RetrySchedule:
    """``inner`` with its rate-limited requests repeated as ``rule`` says.

    A repeat keeps the scheduled time of its first attempt, so that its latency from the schedule holds the wait; the
    inner schedule hears of its end once, when it is over (a closed loop's user waits meanwhile). The sender gets every
    attempt's exchange: ``last_attempts`` keeps those that count.
    """

    def __init__(self, inner: Schedule, rule: RetryRule) -> None:
        self._inner, self._rule = inner, rule
        self._waiting: list[_Waiting] = []
        self._under_way: dict[int, Due] = {}
        self._seen_s = -inf

    def next_due_s(self) -> float | None:
        """The earlier of the next repeat and the inner schedule's next."""
        inner_s = self._inner.next_due_s()
        if not self._waiting:
            return inner_s
        return self._waiting[0].ready_s if inner_s is None else min(inner_s, self._waiting[0].ready_s)

    def take(self, now_s: float) -> Due | None:
        """A repeat whose wait is over, else what the inner schedule has."""
        self._seen_s = now_s
        if self._waiting and self._waiting[0].ready_s <= now_s:
            due: Due | None = heapq.heappop(self._waiting).due
        else:
            due = self._inner.take(now_s)
        if due is not None:
            self._under_way[due.ask.serial] = due
        return due

    def ended(self, exchange: Exchange) -> None:
        """Repeat it, or pass its end on."""
        due = self._under_way.pop(exchange.ask.serial)
        wait_s = self._rule.wait_s(exchange, due.retries)
        if wait_s is None:
            self._inner.ended(exchange)
            return
        ready_s = ended_s(exchange, self._seen_s) + wait_s
        again = due._replace(ready_s=ready_s, retries=due.retries + 1)
        heapq.heappush(self._waiting, _Waiting(ready_s, due.ask.serial, again))

    @property
    def finished(self) -> bool:
        """Whether nothing waits, nothing is under way that could come back as a 429, and the inner one is finished."""
        return not self._waiting and not self._under_way and self._inner.finished

    def split(self, workers: int) -> Sequence[RetrySchedule]:
        """Each part of the inner schedule with the same rule."""
        return [RetrySchedule(part, self._rule) for part in self._inner.split(workers)]


def last_attempts(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """One exchange for each request: its last attempt, in the order in which requests first ended."""
    last: dict[int, Exchange] = {}
    for exchange in exchanges:
        known = last.get(exchange.ask.serial)
        if known is None or exchange.retries >= known.retries:
            last[exchange.ask.serial] = exchange
    return list(last.values())
