"""Figures of ``probe speculate``: speed-up by draft length, predicted and measured, a pair of lines a batch."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.speculation import SpeedupLine, speculation_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import distinct, plottable, rows, text

TITLE = "Speed-up by draft length"
_MOST_BATCHES = 3
_KINDS = (("predicted", "speedup_predicted_timed"), ("measured", "speedup"))


def figures(answer: Answer) -> list[Figure]:
    """One chart; none of acceptance alone."""
    found = rows(answer.result, "rows")
    lines = []
    for batch in distinct([text(row.get("batch")) for row in found])[:_MOST_BATCHES]:
        mine = [row for row in found if text(row.get("batch")) == batch]
        for name, key in _KINDS:
            pairs = [(plottable(row.get("k")) or 0.0, plottable(row.get(key))) for row in mine]
            points = tuple((k, gain) for k, gain in pairs if gain is not None and gain < 1e6)
            lines.append(SpeedupLine(f"batch {batch}, {name}", points))
    if not any(len(line.points) > 1 for line in lines):
        return []
    drawn = speculation_chart([line for line in lines if line.points])
    return [Figure(TITLE, drawn, answer.conditions, table_behind(answer, TITLE))]
