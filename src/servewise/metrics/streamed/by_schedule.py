"""Requests that come in order of ending put in order of schedule, as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = dict[str, NDArray[Any]]


class BySchedule:
    """Requests numbered from 0 in order of their schedule: each is given on once all of lower numbers are here.

    What is held back are those that overtook an earlier one that still waits or runs.
    """

    def __init__(self) -> None:
        self._next = 0
        self._held: Table = {}

    def ready(self, rows: Mapping[str, NDArray[Any]]) -> Table:
        """``rows`` came: all those, held ones included, that are next; ``id`` is their number."""
        table = self._sorted(rows)
        numbers = table["id"]
        off = np.flatnonzero(numbers != np.arange(self._next, self._next + len(numbers)))
        whole = int(off[0]) if len(off) else len(numbers)
        self._held = {name: column[whole:].copy() for name, column in table.items()}
        self._next += whole
        return {name: column[:whole] for name, column in table.items()}

    def rest(self) -> Table:
        """What is still held, where numbers are missing, in order."""
        held, self._held = self._held, {}
        return held

    def _sorted(self, rows: Mapping[str, NDArray[Any]]) -> Table:
        held = self._held or {name: column[:0] for name, column in rows.items()}
        table = {name: np.concatenate((held[name], column)) for name, column in rows.items()}
        order = np.argsort(table["id"], kind="stable")
        return {name: column[order] for name, column in table.items()}
