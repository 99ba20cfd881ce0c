"""Some rows of the request records, as records of their own."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from servewise.records.columns import RequestColumns, TokenTimes

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


def selected(requests: RequestColumns, rows: ArrayLike) -> RequestColumns:
    """The rows of ``requests`` whose places ``rows`` lists (in that order), with their token times and errors."""
    places: NDArray[np.int64] = np.asarray(rows, np.int64)
    found = RequestColumns()
    for name in PLAIN:
        setattr(found, name, _picked(getattr(requests, name), places))
    found.errors = {
        row: requests.errors[place] for row, place in enumerate(places.tolist()) if place in requests.errors
    }
    if requests.token_times is not None:
        found.token_times = _picked_times(requests.token_times, places)
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
