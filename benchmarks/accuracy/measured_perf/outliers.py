"""Why a measurement lies beyond 1.5 times its prediction, as far as it is known."""

from __future__ import annotations

import csv
from functools import cache

from benchmarks.accuracy.measured_perf.data import DATA
from benchmarks.accuracy.measured_perf.judge import Judged

BEYOND = 1.5
FIELDS = ("group", "engine", "accelerator", "model", "weights")


def is_outlier(each: Judged) -> bool:
    """Whether measured and predicted differ more than 1.5-fold."""
    return not 1.0 / BEYOND <= each.ratio <= BEYOND


def cause(each: Judged) -> str | None:
    """The cause on file; None where there is none."""
    case = each.case
    values = (case.group, case.engine, case.where.accelerator.name, case.row.model, case.row.weights)
    for row in _causes():
        wanted = (row[name] for name in FIELDS)
        if all(part in value for part, value in zip(wanted, values, strict=True)):
            return row["cause"]
    return None


@cache
def _causes() -> tuple[dict[str, str], ...]:
    with (DATA / "outliers.csv").open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
