"""Some rows of a run's records, in their order."""

from __future__ import annotations

from array import array
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from servewise.records.columns import RequestColumns, TokenTimes


def taken(requests: RequestColumns, rows: NDArray[np.int64]) -> RequestColumns:
    """The given ``rows`` of ``requests`` as records of their own."""
    chosen = rows.tolist()
    found = RequestColumns()
    for each in fields(requests):
        column = getattr(requests, each.name)
        if isinstance(column, array):
            setattr(found, each.name, array(column.typecode, [column[row] for row in chosen]))
    found.errors = {place: requests.errors[row] for place, row in enumerate(chosen) if row in requests.errors}
    if requests.token_times is not None:
        offsets, times = requests.token_times.offsets, requests.token_times.times
        found.token_times = TokenTimes()
        for row in chosen:
            found.token_times.append(times[offsets[row] : offsets[row + 1]])
    return found
