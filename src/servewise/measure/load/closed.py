"""The closed loop: so many users, each of whom sends, waits for the whole answer, thinks, and sends again."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import inf

from servewise.errors import InputError
from servewise.measure.exchange import Exchange
from servewise.measure.load.ends import ended_s
from servewise.measure.load.supply import Deal, Supply
from servewise.measure.load.thinking import NO_THINKING, Thinking
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due
from servewise.workload import checks

AFTER_FAILURE_S = 0.1  # a server that refuses at once would otherwise be asked thousands of times a second


class ClosedSchedule:
    """``concurrency`` users until the supply ends. A request is scheduled when its user is ready to send it.

    User u begins at ``stagger_s`` x u / concurrency. After a request that failed, a user waits ``AFTER_FAILURE_S``
    longer. Serial s is user (s mod concurrency)'s share, which is how a split deals the asks.
    """

    def __init__(
        self,
        supply: Supply,
        concurrency: int,
        *,
        thinking: Thinking = NO_THINKING,
        stagger_s: float = 0.0,
        users: range | None = None,
    ) -> None:
        """``users``: those of the loop that are here, where others have the rest."""
        self._concurrency = checks.tokens(concurrency, "the concurrency")
        if not 0 <= stagger_s <= checks.MAX_SECONDS:
            raise InputError(f"users begin within a time from 0, not {stagger_s:g} s", where="stagger")
        self._supply, self._thinking, self._stagger_s = supply, thinking, stagger_s
        self._users = range(concurrency) if users is None else users
        self._ready_s = [stagger_s * user / concurrency for user in self._users]
        self._seen_s = -inf

    def next_due_s(self) -> float | None:
        """When the next user is ready; None while all wait for answers."""
        return self._ready_s[0] if self._supply.next_s() is not None and self._ready_s else None

    def take(self, now_s: float) -> Due | None:
        """The request of the user who has been ready longest."""
        self._seen_s = now_s
        due_s = self.next_due_s()
        if due_s is None or due_s > now_s:
            self._supply.build_one()
            return None
        heapq.heappop(self._ready_s)
        return Due(self._supply.take(), due_s)

    def ended(self, exchange: Exchange) -> None:
        """The user has the answer and thinks."""
        pause_s = self._thinking.after(exchange.ask.serial)
        failed = exchange.outcome is not Outcome.COMPLETED
        heapq.heappush(self._ready_s, ended_s(exchange, self._seen_s) + pause_s + (AFTER_FAILURE_S if failed else 0.0))

    @property
    def finished(self) -> bool:
        """Whether the supply is at its end."""
        return self._supply.next_s() is None

    def split(self, workers: int) -> Sequence[ClosedSchedule]:
        """Every worker has its share of the users (none where there are more workers) and of their requests."""
        return [self._share(self._users[worker::workers]) for worker in range(workers)]

    def _share(self, users: range) -> ClosedSchedule:
        supply = self._supply.dealt(Deal(self._concurrency, users))
        return ClosedSchedule(
            supply, self._concurrency, thinking=self._thinking, stagger_s=self._stagger_s, users=users
        )
