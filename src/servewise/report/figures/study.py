"""Figures of ``study``: its two figures again, panel by panel, from the series that the answer holds."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.scales import binary_tick, count_tick, percent_tick
from servewise.report.charts.study import Scale, StudyLine, StudyPoint, study_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, items, mapping, plottable, rows, text
from servewise.report.tables.study import title_of

_MOST_LINES = 7
# Panel -> the table that holds its numbers.
_BEHIND = {
    "positions": "cache_work",
    "step_time": "decode_step",
    "output_rate": "decode_step",
    "latency_p50": "batching",
    "latency_p95": "batching",
    "utilisation": "batching",
    "speedup": "speculation",
    "kl": "quantisation",
    "top_1_agreement": "quantisation",
}


def figures(answer: Answer) -> list[Figure]:
    """Each panel of each figure that has a line of at least two points."""
    found = [mapping(each) for each in mapping(answer.result.get("figures")).values()]
    drawn = [_figure(answer, figure, panel) for figure in found for panel in rows(figure, "panels")]
    return [figure for figure in drawn if figure]


def _figure(answer: Answer, figure: Row, panel: Row) -> Figure | None:
    lines = [line for line in map(_line, rows(panel, "series")) if len(line.points) > 1][:_MOST_LINES]
    if not lines:
        return None
    title = text(panel.get("title"), "The study's figure")
    svg = study_chart(title, lines, _x_scale(panel), _y_scale(panel))
    name = text(panel.get("name"))
    tables = {text(table.get("name")): title_of(table) for table in rows(answer.result, "tables")}
    behind = table_behind(answer, tables.get(_BEHIND.get(name, name), ""))
    note = f"From the figure “{text(figure.get('title'))}”." if text(figure.get("title")) else ""
    return Figure(title, svg, answer.conditions, behind, note)


def _line(series: Row) -> StudyLine:
    studies, intervals = items(series.get("study")), items(series.get("interval"))
    points = {
        x: StudyPoint(x, y, _at(studies, place), _interval(intervals, place))
        for place, (raw_x, raw_y) in enumerate(zip(items(series.get("x")), items(series.get("y")), strict=False))
        if (x := plottable(raw_x)) is not None and (y := plottable(raw_y)) is not None
    }
    return StudyLine(text(series.get("name"), "ours"), tuple(points[x] for x in sorted(points)))


def _at(values: Sequence[object], place: int) -> float | None:
    return plottable(values[place]) if place < len(values) else None


def _interval(values: Sequence[object], place: int) -> tuple[float, float] | None:
    ends = items(values[place]) if place < len(values) else ()
    low, high = (_at(ends, 0), _at(ends, 1)) if len(ends) == 2 else (None, None)
    return (low, high) if low is not None and high is not None and low <= high else None


def _x_scale(panel: Row) -> Scale:
    doubling = panel.get("x_scale") == "log"
    return Scale(_label(panel, "x_label"), binary_tick if doubling else count_tick, 2 if doubling else None)


def _y_scale(panel: Row) -> Scale:
    label = _label(panel, "y_label")
    shares = label.lower().startswith("share")
    return Scale(label, percent_tick if shares else count_tick, 10 if panel.get("y_scale") == "log" else None)


def _label(panel: Row, key: str) -> str:
    words = text(panel.get(key), "?")
    return words[:1].upper() + words[1:] if words[:1].islower() else words
