"""The gaps between tokens of a run's steps, as the steps come: those of ``latency.itl_of_steps``, in its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from servewise.metrics.latency import gaps_of, ints
from servewise.records.columns import StepColumns
from servewise.records.selection import steps_in_turn

Floats = NDArray[np.float64]
NAMES = ("start_s", "seconds", "steps", "decode_sequences", "active")
Rows = dict[str, NDArray[Any]]


class Gaps:
    """Of each replica it keeps the last step that decoded, and the prompts' steps after it: they lengthen the next
    gap."""

    def __init__(self) -> None:
        # By replica and lane: its steps since, and with, the last one that decoded.
        self._open: dict[tuple[int, int], list[Rows]] = {}

    def take(self, steps: StepColumns) -> tuple[Floats, Floats]:
        """The gaps [s] that ``steps`` end and how many tokens came after each."""
        parts = [self._of(places, part) for places, part in steps_in_turn(steps)]
        after, values, weights = (np.concatenate([part[which] for part in parts]) for which in range(3))
        order = np.argsort(after, kind="stable")
        order = order[weights[order] > 0]
        return values[order], weights[order]

    def _of(self, places: NDArray[np.int64], steps: StepColumns) -> tuple[NDArray[np.int64], Floats, Floats]:
        number = int(steps.replica[0]) if len(steps.replica) else 0, int(steps.lane[0]) if len(steps.lane) else 0
        before, rows = self._open.pop(number, []), _rows(steps)
        decoded = np.flatnonzero(rows["decode_sequences"] > 0)
        if not len(decoded):
            self._open[number] = [*before, rows]
            return np.empty(0, np.int64), np.empty(0), np.empty(0)
        self._open[number] = [{name: column[decoded[-1] :].copy() for name, column in rows.items()}]
        after, values, weights = gaps_of(_steps([*before, rows]))
        after = after - sum(len(each["seconds"]) for each in before)
        new = after >= 0  # the gap of the step that was kept is told already
        return places[after[new]], values[new], weights[new]


def _rows(steps: StepColumns) -> Rows:
    return {
        name: np.frombuffer(column, column.typecode)
        for name in NAMES
        if len(column := getattr(steps, name)) == len(steps)
    }


def _steps(parts: Sequence[Rows]) -> StepColumns:
    """The parts as one: arrays of NumPy serve where the metrics only read."""
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return StepColumns(**cast("Any", whole))


def active_of(steps: StepColumns) -> NDArray[np.int64]:
    """The sequences that got a token in each step; the decoding ones where that was not recorded."""
    return ints(steps.active if len(steps.active) == len(steps) else steps.decode_sequences)
