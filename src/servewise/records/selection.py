"""Some rows of the request records as records of their own, and several records as one."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from servewise.records.columns import RequestColumns, StepColumns, TokenTimes

PLAIN = (
    "id",
    "scheduled_s",
    "sent_s",
    "admitted_s",
    "first_token_s",
    "end_s",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "preemptions",
    "status",
)
PHASES = ("replica", "prefill_s", "preempted_s", "transfer_s")  # only where the run recorded them, else empty


def selected(requests: RequestColumns, rows: ArrayLike) -> RequestColumns:
    """The rows of ``requests`` whose places ``rows`` lists (in that order), with their token times and errors."""
    places: NDArray[np.int64] = np.asarray(rows, np.int64)
    found = RequestColumns()
    for name in (*PLAIN, *recorded(requests)):
        setattr(found, name, _picked(getattr(requests, name), places))
    found.errors = {
        row: requests.errors[place] for row, place in enumerate(places.tolist()) if place in requests.errors
    }
    if requests.token_times is not None:
        found.token_times = _picked_times(requests.token_times, places)
    return found


def joined(parts: Sequence[RequestColumns]) -> RequestColumns:
    """The rows of ``parts``, one after the other; token times where every part has them."""
    found = RequestColumns()
    phases = set(PHASES).intersection(*(recorded(part) for part in parts)) if parts else ()
    times = TokenTimes() if all(each.token_times is not None for each in parts) else None
    for part in parts:
        found.errors |= {len(found) + row: text for row, text in part.errors.items()}
        for name in (*PLAIN, *phases):
            getattr(found, name).extend(getattr(part, name))
        if times is not None and part.token_times is not None:
            times.offsets.extend(len(times.times) + offset for offset in part.token_times.offsets[1:])
            times.times.extend(part.token_times.times)
    found.token_times = times
    return found


def recorded(requests: RequestColumns) -> tuple[str, ...]:
    """Those of the optional columns that this run recorded."""
    return tuple(name for name in PHASES if len(getattr(requests, name)) == len(requests))


Part = tuple[NDArray[np.int64], StepColumns]


def steps_by_replica(steps: StepColumns) -> list[Part]:
    """The steps of each replica, by its number, with the places of their rows; one part where none is named."""
    return _steps_by(steps.replica, steps)


def steps_in_turn(steps: StepColumns) -> list[Part]:
    """The same of each lane of each replica: these follow each other, those of several lanes overlap."""
    return [
        (places[rows], part)
        for places, of_one in steps_by_replica(steps)
        for rows, part in _steps_by(of_one.lane, of_one)
    ]


def lanes_of(steps: StepColumns) -> int:
    """How many batches a server had in flight side by side: as many as it has lanes; 1 where none is named."""
    return 1 + int(np.frombuffer(steps.lane, np.int64).max()) if len(steps.lane) else 1


def _steps_by(column: array[int], steps: StepColumns) -> list[Part]:
    if len(column) != len(steps) or not len(steps):
        return [(np.arange(len(steps)), steps)]
    numbers = np.frombuffer(column, np.int64)
    found = np.unique(numbers)
    if len(found) == 1:
        return [(np.arange(len(steps)), steps)]
    return [(places := np.flatnonzero(numbers == number), _picked_steps(steps, places)) for number in found]


def _picked_steps(steps: StepColumns, places: NDArray[np.int64]) -> StepColumns:
    found = StepColumns()
    for each in fields(StepColumns):
        column = getattr(steps, each.name)
        if len(column) == len(steps):
            setattr(found, each.name, _picked(column, places))
    return found


def _picked(column: array[Any], places: NDArray[np.int64]) -> array[Any]:
    if not len(places):
        return array(column.typecode)
    return array(column.typecode, np.frombuffer(column, column.typecode)[places].tobytes())


def _picked_times(times: TokenTimes, places: NDArray[np.int64]) -> TokenTimes:
    found = TokenTimes()
    for place in places.tolist():
        found.append(times.times[times.offsets[place] : times.offsets[place + 1]])
    return found
