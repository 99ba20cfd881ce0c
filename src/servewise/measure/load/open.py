"""The open loop: requests leave at times of their own, whatever the server does."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import inf

from servewise.measure.exchange import Exchange
from servewise.measure.load.ends import ended_s
from servewise.measure.load.supply import Deal, Supply
from servewise.measure.schedule import Due
from servewise.workload import checks


class OpenSchedule:
    """The requests of a supply at their times of arrival.

    ``max_in_flight`` holds requests back while so many are under way, as a gateway would: what is held back keeps its
    scheduled time, so that latency from the schedule shows the wait (coordinated omission stays visible).
    """

    def __init__(self, supply: Supply, *, max_in_flight: int | None = None) -> None:
        self._supply = supply
        cap = None if max_in_flight is None else checks.tokens(max_in_flight, "the most requests in flight")
        self._free_s = None if cap is None else [-inf] * cap
        self._seen_s = -inf

    def next_due_s(self) -> float | None:
        """When the next request may leave; None while the cap is reached, or at the end."""
        due_s = self._supply.next_s()
        if due_s is None or self._free_s is None:
            return due_s
        return max(due_s, self._free_s[0]) if self._free_s else None

    def take(self, now_s: float) -> Due | None:
        """The next request whose time has come."""
        self._seen_s = now_s
        ready_s = self.next_due_s()
        if ready_s is None or ready_s > now_s:
            self._supply.build_one()
            return None
        due_s = self._supply.next_s()
        assert due_s is not None, "a request that may leave is there"
        if self._free_s is not None:
            heapq.heappop(self._free_s)
        return Due(self._supply.take(), due_s, ready_s if ready_s > due_s else None)

    def ended(self, exchange: Exchange) -> None:
        """Another may leave where there is a cap."""
        if self._free_s is not None:
            heapq.heappush(self._free_s, ended_s(exchange, self._seen_s))

    @property
    def finished(self) -> bool:
        """Whether all have left."""
        return self._supply.next_s() is None

    def split(self, workers: int) -> Sequence[OpenSchedule]:
        """Requests are dealt in turn, and so is the cap: workers beyond it have nothing to send."""
        sharing = workers if self._free_s is None else min(workers, len(self._free_s))
        return [self._share(worker, sharing) for worker in range(workers)]

    def _share(self, worker: int, sharing: int) -> OpenSchedule:
        cap = None if self._free_s is None else len(self._free_s[worker::sharing]) or 1
        mine = range(worker, sharing, sharing)  # empty beyond those that share
        return OpenSchedule(self._supply.dealt(Deal(sharing, mine)), max_in_flight=cap)
