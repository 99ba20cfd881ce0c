"""Figures of ``probe kv``: positions and time with and without the cache, by reply length."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.scales import count_tick, seconds_tick
from servewise.report.charts.study import Scale, StudyLine, StudyPoint, study_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, distinct, plottable, rows, text

_MOST_DTYPES = 3
_KINDS = (("no cache", "without_cache"), ("cache", "with_cache"))


def figures(answer: Answer) -> list[Figure]:
    """Positions (equal in every dtype), and the time in each dtype."""
    found = rows(answer.result, "rows")
    dtypes = distinct([text(row.get("dtype")) for row in found])[:_MOST_DTYPES]
    first = [row for row in found if text(row.get("dtype")) in dtypes[:1]]
    positions = [_line(first, f"positions_{key}", name) for name, key in _KINDS]
    times = [
        _line([row for row in found if text(row.get("dtype")) == dtype], f"wall_{key}_s", f"{dtype}, {name}")
        for dtype in dtypes
        for name, key in _KINDS
    ]
    drawn = [
        ("Positions processed", positions, Scale("Positions", count_tick, 10)),
        ("Time for the reply", times, Scale("Time", seconds_tick, 10)),
    ]
    return [figure for title, lines, y in drawn if (figure := _figure(answer, title, lines, y))]


def _figure(answer: Answer, title: str, lines: list[StudyLine], y: Scale) -> Figure | None:
    kept = [line for line in lines if len(line.points) > 1]
    if not kept:
        return None
    svg = study_chart(title, kept, Scale("Tokens of the reply", count_tick, 2), y)
    return Figure(title, svg, answer.conditions, table_behind(answer, ""))


def _line(found: list[Row], key: str, name: str) -> StudyLine:
    points = {
        x: StudyPoint(x, y)
        for row in found
        if (x := plottable(row.get("tokens"))) is not None and (y := plottable(row.get(key))) is not None
    }
    return StudyLine(name, tuple(points[x] for x in sorted(points)))
