"""The part of a run that counts: what came after it had settled."""

from __future__ import annotations

from array import array
from dataclasses import fields, replace

import numpy as np

from servewise.records.columns import StepColumns
from servewise.records.selection import selected
from servewise.simulate.run import Run


def since(run: Run, at_s: float) -> Run:
    """The requests that were due at ``at_s`` or later, and the steps that began then; times stay as they are."""
    if at_s <= 0:
        return run
    due = np.frombuffer(run.requests.scheduled_s) if len(run.requests) else np.empty(0)
    return replace(
        run, requests=selected(run.requests, np.flatnonzero(due >= at_s)), steps=_steps_since(run.steps, at_s)
    )


def _steps_since(steps: StepColumns, at_s: float) -> StepColumns:
    found = StepColumns()
    if not len(steps):
        return found
    later = np.frombuffer(steps.start_s) >= at_s
    for each in fields(StepColumns):
        column: array[float] = getattr(steps, each.name)
        if len(column) == len(steps):
            picked = np.frombuffer(column, column.typecode)[later].tobytes()
            setattr(found, each.name, array(column.typecode, picked))
    return found
