"""Where a run's requests come from: a stream with times of its own, or clients that wait for their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from math import inf
from typing import Protocol

from servewise.errors import InputError
from servewise.workload.request import Request


class Arrivals(Protocol):
    """A source of requests for the event core."""

    @property
    def next_s(self) -> float:
        """When the next request arrives; infinity: none is known to come."""
        ...

    def take(self) -> Request:
        """The next request."""
        ...

    def ended(self, serial: int, now_s: float) -> None:
        """Request ``serial`` ended at ``now_s``."""
        ...


class OpenArrivals:
    """Arrivals that do not wait for answers, in order of time; a step back in time is refused."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._requests: Iterator[Request] = iter(requests)
        self.next_s = -inf
        self._next: Request | None = None
        self.take()

    def take(self) -> Request:
        """The next request (the first call, from ``__init__``, only looks ahead)."""
        request = self._next
        self._next = upcoming = next(self._requests, None)
        if upcoming is None:
            self.next_s = inf
        else:
            arrival_s = upcoming[1]
            if not self.next_s <= arrival_s < inf:
                raise _out_of_order(upcoming, self.next_s)
            self.next_s = arrival_s
        return request  # type: ignore[return-value]  # None only for the look ahead

    def ended(self, serial: int, now_s: float) -> None:
        """Nobody waits for it."""


class ClosedArrivals:
    """``concurrency`` clients: each sends its next request ``think_s`` seconds after its last one ended.

    The requests' own arrival times are not used.
    """

    def __init__(self, requests: Iterable[Request], concurrency: int, think_s: float = 0.0) -> None:
        self._requests = iter(requests)
        self._think_s = think_s
        self._due: list[tuple[float, int, Request]] = []
        for _ in range(concurrency):
            self._send(0.0)

    @property
    def next_s(self) -> float:
        """When the next client sends."""
        return self._due[0][0] if self._due else inf

    def _send(self, at_s: float) -> None:
        request = next(self._requests, None)
        if request is not None:
            heappush(self._due, (at_s, request.serial, request))

    def take(self) -> Request:
        """The next request, stamped with the time at which its client sends it."""
        at_s, _, request = heappop(self._due)
        return request._replace(arrival_s=at_s)

    def ended(self, serial: int, now_s: float) -> None:  # noqa: ARG002 - any client sends the next one
        """A client got its answer and will send again."""
        self._send(now_s + self._think_s)


def _out_of_order(request: Request, earlier_s: float) -> InputError:
    return InputError(
        f"request {request.serial} arrives at {request.arrival_s} s, after one at {earlier_s} s",
        where="workload",
        hint="requests must be in order of arrival",
    )
