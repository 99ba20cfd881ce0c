"""What a measured run's seconds are: the wall's, or the wall's without those that neighbours took from it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from servewise.errors import InputError, UnknownName
from servewise.probe.ops.machine import Machine, waited_s

Clock = Callable[[], float]
CLOCKS = ("wall", "undisturbed")


def clock_named(name: str, machine: Machine) -> Clock:
    """The clock called ``wall``, or ``undisturbed``: it stands still while this process waits for a core.

    On a machine that others use too, the second measures what the first would on an idle one (save for what they take
    of caches and memory bandwidth). It needs a single thread: several wait for each other, and what neighbours took
    from the step cannot be told from what they took from one of its threads. Raises InputError where it cannot be had.
    """
    if name not in CLOCKS:
        raise UnknownName("clock", name, CLOCKS, where="clock", hint=f"one of {', '.join(CLOCKS)}")
    if name == "wall":
        return perf_counter
    if machine.threads != 1:
        raise InputError("needs a single CPU thread", where="clock undisturbed", hint="give --threads 1")
    if waited_s(all_threads=False) is None:
        raise InputError("this system does not tell how long a process waited", where="clock undisturbed")
    return _undisturbed


def _undisturbed() -> float:
    return perf_counter() - (waited_s(all_threads=False) or 0.0)
