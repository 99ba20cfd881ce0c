"""The figure of ``precisions``, which several commands may give."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.precision import PrecisionPoint, precision_chart
from servewise.report.reading import mapping, plottable, rows, text
from servewise.report.tables.precision import precisions
from servewise.report.wording import figure

_LEAST, _MOST = 2, 12


def precision_figures(answer: Answer) -> list[Figure]:
    """Bytes against speed, where at least two precisions are known."""
    found = rows(answer.result, "precisions")
    points = [
        PrecisionPoint(text(row.get("name"), "?"), size, speed, _quality(mapping(row.get("quality"))))
        for row in found[:_MOST]
        if (size := plottable(row.get("weight_bytes"))) and (speed := plottable(row.get("tokens_per_s")))
    ]
    if len(points) < _LEAST:
        return []
    batches = {figure(row.get("batch")) for row in found}
    batch = batches.pop() if len(batches) == 1 else ""
    table = precisions(answer.result)
    return [Figure(table.title, precision_chart(points, batch="" if batch == "–" else batch), answer.conditions, table)]


def _quality(quality: object) -> str:
    found = mapping(quality)
    return f"{text(found.get('metric'))} {figure(found.get('value'))}" if found else ""
