"""The records of a fleet's parts as those of the whole, some rows at a time, from columns on disk.

Each part's rows are in order of their keys; equal keys are of one part, and stay in its order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from servewise.records.columns import RequestColumns, StepColumns
from servewise.scratch import PIECE, Column, Folder
from servewise.simulate.fleet.portion import Keys
from servewise.simulate.recorder import REQUEST_ROW, STEP_ROW, Sink

AT, ORDER = "at_s", "order"
Table = dict[str, NDArray[Any]]
# Counts below 2^31 take four bytes: lengths are below 10^8, and a batch has fewer sequences than that.
SMALL = {"output_tokens", "preemptions", "status", "replica", "lane"}
SMALL |= {"steps", "decode_sequences", "running", "waiting"}
TIMES = {name for name in (*REQUEST_ROW, *STEP_ROW, AT) if name.endswith("_s") or name == "seconds"}


class PortionRecords:
    """Where a part's records go: columns in ``folder``, each row with its key. Other processes may read them."""

    def __init__(self, folder: Folder) -> None:
        self._requests, self._steps = (
            {name: folder.column(_kind(name)) for name in (*row, AT, ORDER) if name != "sent_s"}
            for row in (REQUEST_ROW, STEP_ROW)
        )

    def requests(self, requests: RequestColumns, keys: Keys) -> None:
        """The next requests that ended."""
        _append(self._requests, requests, keys)

    def steps(self, steps: StepColumns, keys: Keys) -> None:
        """The next steps."""
        _append(self._steps, steps, keys)

    def remove(self) -> None:
        """They are not needed any more."""
        for column in (*self._requests.values(), *self._steps.values()):
            column.remove()

    @property
    def tables(self) -> tuple[Mapping[str, Column], Mapping[str, Column]]:
        """The columns of its requests, and of its steps."""
        return self._requests, self._steps


def merge(parts: Sequence[PortionRecords], into: Sink, *, rows: int = PIECE) -> None:
    """All rows of ``parts`` to ``into``, in the whole's order; no more than some ``rows`` of each in memory."""
    requests, steps = zip(*(part.tables for part in parts), strict=True)
    for table in _merged(requests, rows):
        table["sent_s"] = table["scheduled_s"]  # nobody is late in a simulation
        into.requests(RequestColumns(**cast("Any", {name: _array(table[name]) for name in REQUEST_ROW})))
    for table in _merged(steps, rows):
        into.steps(StepColumns(**{name: _array(table[name]) for name in STEP_ROW}))


def _merged(parts: Sequence[Mapping[str, Column]], rows: int) -> Iterator[Table]:
    reading = [_Reading(part, rows) for part in parts if len(part[AT])]
    while reading:
        limit = min((each.last_s for each in reading if each.more), default=np.inf)
        ready = [each.before(limit) for each in reading]
        table = {name: np.concatenate([each[name] for each in ready]) for name in ready[0]}
        order = np.lexsort((table[ORDER], table[AT]))
        if len(order):
            yield {name: column[order] for name, column in table.items()}
        reading = [each for each in reading if each.read_on(limit)]


class _Reading:
    """A part as it is read: what is in memory of it, and where the rest begins."""

    def __init__(self, part: Mapping[str, Column], rows: int) -> None:
        self._part, self._rows, self._at = part, rows, 0
        self._held: Table = {name: column.read(0, 0) for name, column in part.items()}
        self.read_on(0.0)

    @property
    def more(self) -> bool:
        """Whether rows are still on disk."""
        return self._at < len(self._part[AT])

    @property
    def last_s(self) -> float:
        """The last moment of which a row is here: of it, more may come."""
        return float(self._held[AT][-1])

    def before(self, limit_s: float) -> Table:
        """Take what is before ``limit_s``; all where that is infinite."""
        count = len(self._held[AT]) if limit_s == np.inf else int(np.searchsorted(self._held[AT], limit_s))
        taken = {name: column[:count] for name, column in self._held.items()}
        self._held = {name: column[count:] for name, column in self._held.items()}
        return taken

    def read_on(self, limit_s: float) -> bool:
        """Read more where nothing beyond ``limit_s`` is here; False: there is nothing any more."""
        if self.more and not (len(self._held[AT]) and self.last_s > limit_s):
            stop = min(self._at + self._rows, len(self._part[AT]))
            parts = {name: column.read(self._at, stop) for name, column in self._part.items()}
            self._held = {name: np.concatenate((self._held[name], parts[name])) for name in parts}
            self._at = stop
        return bool(len(self._held[AT])) or self.more


def _append(columns: Mapping[str, Column], rows: RequestColumns | StepColumns, keys: Keys) -> None:
    for name, column in columns.items():
        values = getattr(keys if name in (AT, ORDER) else rows, name)
        column.append(np.frombuffer(values, values.typecode))


def _kind(name: str) -> str:
    return "d" if name in TIMES else "i" if name in SMALL else "q"


def _array(values: NDArray[Any]) -> array[Any]:
    kind = "d" if values.dtype.kind == "f" else "q"
    return array(kind, values.astype(kind).tobytes())
