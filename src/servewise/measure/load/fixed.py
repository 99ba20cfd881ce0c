"""Asks that are there already: at given times, or so many at once until they are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from servewise.errors import InputError
from servewise.measure.ask import Ask
from servewise.measure.load.asks import GivenAsks
from servewise.measure.load.closed import ClosedSchedule
from servewise.measure.load.open import OpenSchedule
from servewise.measure.load.supply import Supply
from servewise.measure.schedule import Due
from servewise.workload.request import Request


def at_times(dues: Sequence[Due]) -> OpenSchedule:
    """Every ask at its scheduled time, in order of time."""
    ordered = sorted(dues, key=lambda due: due.scheduled_s)
    return OpenSchedule(_given([due.ask for due in ordered], [due.scheduled_s for due in ordered]))


def one_by_one(asks: Sequence[Ask], concurrency: int = 1) -> ClosedSchedule:
    """The asks in their order, ``concurrency`` at a time."""
    return ClosedSchedule(_given(asks, [0.0] * len(asks)), concurrency)


def _given(asks: Sequence[Ask], times_s: Sequence[float]) -> Supply:
    if len({ask.serial for ask in asks}) != len(asks):
        raise InputError("two asks of one run have the same serial number")
    listed: Callable[[], Iterator[Request]] = partial(_requests, tuple(times_s))
    return Supply(listed, GivenAsks(tuple(asks)))


def _requests(times_s: tuple[float, ...]) -> Iterator[Request]:
    return (Request(place, time_s, 1, 1) for place, time_s in enumerate(times_s))
