"""Requests with real arrival times through an engine: open loop, or clients that wait for their answers."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Tokens
from math import inf
from time import sleep
from typing import Protocol

from servewise.engine.running.engine import Engine
from servewise.engine.sampling_settings import SamplingSettings
from servewise.errors import InputError
from servewise.workload.request import Request


class Arrivals(Protocol):
    """Where requests come from; the simulator's sources (``simulate.arrivals``) are such."""

    @property
    def next_s(self) -> float:
        """When the next request arrives [s from the engine's start]; infinity: none is known to come."""
        ...

    def take(self) -> Request:
        """The next request."""
        ...

    def ended(self, serial: int, now_s: float) -> None:
        """Request ``serial`` ended at ``now_s``."""
        ...


Prompt = Callable[[Request], tuple[Tokens[int], SamplingSettings]]


def replay(
    engine: Engine,
    arrivals: Arrivals,
    prompt: Prompt,
    *,
    wait: Callable[[float], None] = sleep,
    until: Callable[[Engine], bool] | None = None,
) -> None:
    """Run ``arrivals`` through ``engine`` to their ends; its records are the run's.

    ``prompt`` gives a request its tokens and settings. Times count from the engine's start, so make it just before.
    Requests keep their serials. A request that came during a step is there before the next is planned, with its own
    arrival time, as in the simulator; one that can never run is recorded as rejected. ``until`` is asked after every
    step whether to stop; what has not ended then is recorded as unfinished.
    """
    while True:
        _arrive(engine, arrivals, prompt)
        outcome = engine.step()
        for each in outcome.ended:
            arrivals.ended(each.serial, engine.now_s)
        if outcome.batch is None and not _wait(engine, arrivals, wait):
            return
        if until is not None and until(engine):
            engine.abandon()
            return


def _arrive(engine: Engine, arrivals: Arrivals, prompt: Prompt) -> None:
    while arrivals.next_s <= engine.now_s:
        request = arrivals.take()
        tokens, settings = prompt(request)
        try:
            engine.submit(tokens, settings, arrival_s=request.arrival_s, serial=request.serial)
        except InputError:
            arrivals.ended(request.serial, engine.now_s)


def _wait(engine: Engine, arrivals: Arrivals, wait: Callable[[float], None]) -> bool:
    """Let time pass to what happens next; False: nothing will."""
    next_s = min(arrivals.next_s, engine.wake_s())
    if next_s == inf:
        if engine.idle:
            return False
        engine.close()
        return True
    left_s = next_s - engine.now_s
    if left_s > 0:
        wait(left_s)
    return True
