"""Figures of ``prefix``: reuse by depth and by the cache's size."""

from __future__ import annotations

from collections.abc import Callable

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.reuse import Points, capacity_chart, depth_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import number, rows

_MOST_TOKENS = 1e15


def figures(answer: Answer) -> list[Figure]:
    """The two curves, each where it has at least two points."""
    return [
        *_curve(answer, "reuse_by_depth", "offset_tokens", 0.0, "Reuse by depth in the prompt", depth_chart),
        *_curve(answer, "by_capacity", "capacity_tokens", 1.0, "Reuse by size of the cache", capacity_chart),
    ]


def _curve(
    answer: Answer, key: str, x_key: str, least: float, title: str, chart: Callable[[Points], str]
) -> list[Figure]:
    points = {
        x: share
        for row in rows(answer.result, key)
        if (x := number(row.get(x_key))) is not None and (share := number(row.get("hit_rate"))) is not None
        if least <= x <= _MOST_TOKENS and 0 <= share <= 1
    }
    if len(points) < 2:
        return []
    return [Figure(title, chart(sorted(points.items())), answer.conditions, table_behind(answer, title))]
