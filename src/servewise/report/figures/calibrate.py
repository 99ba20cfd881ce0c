"""Figure of ``calibrate``: predicted over measured, load by load."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.forest import Ratio, forest_chart
from servewise.report.figures.compare import drawable
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, mapping, rows, text
from servewise.report.tables.calibrate import ERRORS

_OF, _MOST_LOADS = "Predicted over measured", 12
_WAYS = {"bias": "", "bias_left_out": ", by others"}


def figures(answer: Answer) -> list[Figure]:
    """The chart, where a load has a ratio."""
    calibration = mapping(answer.result.get("calibration")) or answer.result
    ratios = [ratio for row in rows(calibration, "by_load")[:_MOST_LOADS] for ratio in _ratios(row)]
    if not ratios:
        return []
    note = "Sums over all that was held out; by others: by a fit that never saw this load."
    chart = forest_chart(ratios, f"{_OF}, load by load", _OF)
    return [Figure(f"{_OF}, load by load", chart, answer.conditions, table_behind(answer, ERRORS), note)]


def _ratios(row: Row) -> Iterator[Ratio]:
    for key, way in _WAYS.items():
        value = drawable(row.get(key))
        if value is not None:
            yield Ratio(f"{text(row.get('load')).removeprefix('closed loop of ')}{way}", value, None)
