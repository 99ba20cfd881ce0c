"""A sender without sockets: it runs a schedule on a clock of its own, and answers by a function."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from itertools import count
from math import inf
from typing import Any

from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due, Schedule

Answer = Callable[[Due, float], Exchange]
MOST = 100_000


def taking(service_s: float, **more: Any) -> Answer:
    """Every request is sent at once and completed after ``service_s``."""
    return lambda due, now_s: ended(due, now_s, now_s + service_s, **more)


def ended(due: Due, sent_s: float, end_s: float, **more: Any) -> Exchange:
    """The exchange of ``due``, completed unless ``more`` says otherwise."""
    fields: dict[str, Any] = {"outcome": Outcome.COMPLETED, "retries": due.retries} | more
    return Exchange(ask=due.ask, scheduled_s=due.scheduled_s, sent_s=sent_s, end_s=end_s, **fields)


def driven(schedule: Schedule, answer: Answer, until_s: float = inf) -> list[Exchange]:
    """All exchanges in order of ending; nothing is taken at ``until_s`` or later."""
    now_s, serial, under_way, done = 0.0, count(), list[tuple[float, int, Exchange]](), list[Exchange]()
    while True:
        while now_s < until_s and (due := schedule.take(now_s)) is not None:
            exchange = answer(due, now_s)
            heapq.heappush(under_way, (exchange.end_s, next(serial), exchange))
        due_s = schedule.next_due_s()
        next_s = min(due_s if due_s is not None else inf, under_way[0][0] if under_way else inf)
        if (next_s >= until_s and not under_way) or next_s == inf:
            return done
        now_s = max(now_s, next_s) if next_s < until_s else under_way[0][0]
        while under_way and under_way[0][0] <= now_s:
            done.append(heapq.heappop(under_way)[2])
            schedule.ended(done[-1])
            assert len(done) < MOST, "a schedule that goes on without end"


def most_under_way(exchanges: list[Exchange]) -> int:
    """The most requests that were between sent and end at one moment; an end comes before a send at the same time."""
    steps = sorted((time_s, step) for each in exchanges for time_s, step in ((each.sent_s, 1), (each.end_s, -1)))
    under_way = [0]
    for _, step in steps:
        under_way.append(under_way[-1] + step)
    return max(under_way)


def text_of(exchange: Exchange) -> str:
    """The first message of a chat, or the prompt's text."""
    fields = json.loads(exchange.ask.body)
    found: str = fields["prompt"] if "prompt" in fields else fields["messages"][0]["content"]
    return found
