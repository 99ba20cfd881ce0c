"""What comes to servers: a workload as their context takes it, at each of the rates asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite

from servewise.ask.numbers import positives
from servewise.ask.serving import (
    Door,
    Load,
    WorkloadLike,
    fitted,
    is_closed,
    is_seeded,
    shapes_of,
    users_of,
    workload_named,
)
from servewise.errors import InputError


@dataclass(frozen=True, slots=True)
class Offered:
    """``load`` at each of ``rates`` [requests/s] (0 alone: a closed loop, which has none).

    ``longest``: the longest context that the servers take [tokens]; ``seeded``: another seed gives other requests.
    """

    load: Load
    rates: tuple[float, ...]
    longest: int | None
    seeded: bool

    @property
    def words(self) -> str:
        """The load in words, for conditions."""
        if is_closed(self.load):
            return f"{users_of(self.load)} users in a closed loop"
        return f"{', '.join(f'{each:g}' for each in self.rates)} requests/s"

    def door(self, seed: int) -> Door:
        """The door after all requests of ``seed`` have come to it."""
        door = Door(shapes_of(self.load, seed), self.longest)
        deque(door, maxlen=0)
        return door


def offered_to(
    longest: int | None,
    workload: WorkloadLike,
    requests: int | None,
    rate: float | Iterable[float] | None,
) -> Offered:
    """``workload``, cut or repeated to ``requests``, at ``rate`` or its own, to servers of the context ``longest``."""
    load = fitted(workload_named(workload, requests), longest)
    return Offered(load, _rates(load, rate), longest, is_seeded(load))


def _rates(load: Load, rate: float | Iterable[float] | None) -> tuple[float, ...]:
    """The rates asked for; a closed loop has none, and one row."""
    if is_closed(load):
        if rate is not None:
            hint = "change its concurrency, or leave the rate out"
            raise InputError("a closed loop has no rate", where="rate", hint=hint)
        return (0.0,)
    own = getattr(load, "rate_per_s", inf)
    if rate is None and not isfinite(own):
        what = "all its requests come at one moment, so it has no rate of its own"
        raise InputError(what, where=load.title, hint="give more requests, at different times")
    return positives(own if rate is None else rate, "rate")
