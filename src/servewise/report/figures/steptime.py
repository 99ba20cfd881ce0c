"""Figures of ``steptime``: step time against batch."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.steptime import Ridge, StepPoint, steptime_chart
from servewise.report.figures.pick import table_behind
from servewise.report.figures.precision import precision_figures
from servewise.report.reading import Row, plottable, rows, text

_RIDGES = ("ridge", "ridge without KV")


def figures(answer: Answer) -> list[Figure]:
    """The step's time, and the precisions where they are given."""
    return [*_steps(answer), *precision_figures(answer)]


def _steps(answer: Answer) -> list[Figure]:
    found = rows(answer.result, "rows")
    contexts = {str(row.get("context_tokens")) for row in found}
    points = sorted({point for row in found if (point := _point(row))})
    if len({point.batch for point in points}) < 2 or len(contexts) > 1:
        return []
    own = "ridge_batch_estimated" if "ridge_batch_estimated" in answer.result else "ridge_batch"  # where the lines meet
    keys = zip((own, "ridge_batch_without_kv"), _RIDGES, strict=True)
    ridges = [Ridge(batch, name) for key, name in keys if (batch := plottable(answer.result.get(key)))]
    svg = steptime_chart(points, ridges, phase=text(answer.result.get("phase"), "decode"))
    return [Figure("Step time against batch", svg, answer.conditions, table_behind(answer, "Time of one step"))]


def _point(row: Row) -> StepPoint | None:
    batch, compute, memory, step = (plottable(row.get(key)) for key in ("batch", "compute_s", "memory_s", "step_s"))
    if batch is None or compute is None or memory is None or step is None:
        return None
    return StepPoint(batch, compute, memory, step, plottable(row.get("floor_s")) or max(compute, memory))
