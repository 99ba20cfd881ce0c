"""Figures of ``compare``: each load's ratios with their intervals."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.forest import Ratio, forest_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, distinct, items, number, rows, text
from servewise.report.tables.compare import metric_name

_MOST_FIGURES, _MOST_ROWS = 6, 30
_LEAST, _MOST = 1e-6, 1e6  # ratios beyond are no comparison


def figures(answer: Answer) -> list[Figure]:
    """A chart for each load."""
    found = rows(answer.result, "rows")
    drawn = []
    for load in distinct([text(row.get("condition")) for row in found])[:_MOST_FIGURES]:
        of_load = [row for row in found if text(row.get("condition")) == load]
        ratios = [ratio for row in of_load if (ratio := _ratio(row))][:_MOST_ROWS]
        if ratios:
            title = f"A against B: {load}" if load else "A against B"
            chart = forest_chart(ratios, f"B over A, {load}" if load else "B over A")
            note = "Bars are 95% intervals. Hollow: the same, or unclear."
            drawn.append(
                Figure(
                    title.replace("A against B", "B over A"),
                    chart,
                    answer.conditions,
                    table_behind(answer, title),
                    note,
                )
            )
    return drawn


def _ratio(row: Row) -> Ratio | None:
    value = drawable(row.get("ratio"))
    if value is None:
        return None
    pair = [drawable(each) for each in items(row.get("ci95"))]
    known = len(pair) == 2 and pair[0] is not None and pair[1] is not None and pair[0] <= pair[1]
    interval = (pair[0], pair[1]) if known else None
    return Ratio(metric_name(row.get("metric")), value, interval, text(row.get("verdict")))  # type: ignore[arg-type]


def drawable(value: object) -> float | None:
    """A number that a chart of ratios can hold."""
    found = number(value)
    return found if found is not None and _LEAST <= found <= _MOST else None
