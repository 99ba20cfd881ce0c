"""How many replicas there should be: asked at every interval, as Kubernetes' horizontal pod autoscaler asks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

from servewise.batching.positive import positive
from servewise.errors import InputError

Metric = Literal["load", "wait"]
METRICS: tuple[Metric, ...] = ("load", "wait")
TOLERANCE, ROUNDING = 0.1, 1e-9


class Seen(NamedTuple):
    """What the autoscaler is told: replicas ordered and not leaving, their requests, and the longest wait now.

    ``slots`` of one replica; ``requests`` run or wait anywhere but at replicas that are leaving; ``waiting`` of them
    have no slot; ``longest_wait_s`` since its arrival, of those that wait.
    """

    replicas: int
    slots: int
    requests: int
    waiting: int
    longest_wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscale:
    """Keep ``metric`` at ``target`` with ``least`` to ``most`` replicas; asked every ``interval_s`` [s].

    - ``load``: requests that run or wait, over slots. Wanted: ceil(replicas x load / target), which is
      ceil(requests / (slots x target)); a replica that is starting has slots and no load. Within 10% of the target
      nothing changes. (Kubernetes v1.33 documentation, "Horizontal Pod Autoscaling", algorithm details.)
    - ``wait``: the longest wait of a request that waits now [s]. Above the target one replica more; one fewer when
      nobody waits and the others have the slots for all that runs.

    A new replica is up after ``startup_s`` [s]. Fewer replicas are wanted only if at every asking of the last
    ``settle_s`` [s] that few were enough (Kubernetes' stabilisation window, there 300 s). One that leaves takes no new
    requests and goes when its own have ended.
    """

    metric: Metric = "load"
    target: float = 0.7
    interval_s: float = 15.0
    startup_s: float = 120.0
    settle_s: float = 300.0
    least: int = 1
    most: int = 16

    def __post_init__(self) -> None:
        """Refuse numbers that are not positive, bounds that cross, and another metric."""
        if self.metric not in METRICS:
            raise InputError(f"autoscaling by {self.metric!r} is not known", hint=f"one of {', '.join(METRICS)}")
        for name in ("target", "interval_s", "least"):
            positive(f"autoscaling's {name}", getattr(self, name))
        for name in ("startup_s", "settle_s"):
            positive(f"autoscaling's {name}", getattr(self, name), zero=True)
        if self.most < self.least:
            raise InputError(f"autoscaling between {self.least} and {self.most} replicas", hint="most is the larger")


class Autoscaler:
    """``Autoscale`` at work: it remembers what it wanted before."""

    def __init__(self, settings: Autoscale) -> None:
        self.settings = settings
        self._wanted: deque[tuple[float, int]] = deque()

    def wanted(self, now_s: float, seen: Seen) -> int:
        """How many replicas there should be from ``now_s`` on."""
        settings = self.settings
        raw = _by_load(settings.target, seen) if settings.metric == "load" else _by_wait(settings.target, seen)
        now = min(max(raw, settings.least), settings.most)
        self._wanted.append((now_s, now))
        while self._wanted[0][0] < now_s - settings.settle_s:
            self._wanted.popleft()
        if now >= seen.replicas:
            return now
        return min(seen.replicas, max(each for _, each in self._wanted))


def _by_load(target: float, seen: Seen) -> int:
    wanted = seen.requests / (seen.slots * target)
    within = abs(wanted - seen.replicas) <= TOLERANCE * seen.replicas + ROUNDING
    return seen.replicas if within else ceil(wanted - ROUNDING)


def _by_wait(target_s: float, seen: Seen) -> int:
    if seen.longest_wait_s > target_s:
        return seen.replicas + 1
    spare = not seen.waiting and seen.requests <= (seen.replicas - 1) * seen.slots
    return seen.replicas - spare
