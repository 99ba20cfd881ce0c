"""Time on a machine that others use too."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, thread_time
from typing import NamedTuple

from servewise.probe.ops.machine import Machine, waited_s


class Stopwatch(NamedTuple):
    """``clock`` counts seconds, ``waited`` those of them in which threads waited for a core.

    ``on_core``: the clock stands still while its one thread waits, and nothing is left to tell.
    """

    clock: Callable[[], float]
    waited: Callable[[], float]
    on_core: bool


def stopwatch_for(machine: Machine) -> Stopwatch:
    """With one CPU thread, that thread's own time on the core; else the wall clock, and what threads waited beside it.

    Several threads wait for each other too, so that none's time on the core is what a step took.
    """
    if machine.device == "cpu" and machine.threads == 1:
        return Stopwatch(thread_time, lambda: 0.0, on_core=True)
    return Stopwatch(perf_counter, lambda: waited_s() or 0.0, on_core=False)
