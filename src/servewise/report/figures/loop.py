"""Figures of ``loop``: the plan's own point, predicted over measured; then those of its calibration."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.forest import Ratio, forest_chart
from servewise.report.figures import calibrate
from servewise.report.figures.compare import drawable
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, items, rows
from servewise.report.tables.compare import metric_name
from servewise.report.tables.loop import COMPARED, plain

_OF = "Predicted over measured"


def figures(answer: Answer) -> list[Figure]:
    """What can be drawn of both."""
    ratios = [ratio for row in rows(answer.result, "rows") if (ratio := _ratio(row))]
    behind = calibrate.figures(answer)
    if not ratios:
        return behind
    chart = forest_chart(ratios, f"{_OF}, at the plan's own point", _OF)
    note = "Bars are the measurement's 95% intervals."
    return [Figure(COMPARED, chart, answer.conditions, table_behind(answer, COMPARED), note), *behind]


def _ratio(row: Row) -> Ratio | None:
    predicted, value = drawable(row.get("predicted")), drawable(row.get("ratio"))
    if predicted is None or value is None:
        return None
    ends = [drawable(each) for each in items(row.get("ci95"))]
    known = [drawable(predicted / end) for end in ends if end is not None]
    pair = [each for each in known if each is not None]
    interval = (min(pair), max(pair)) if len(pair) == 2 else None
    return Ratio(metric_name(plain(row)), value, interval)
