"""Figures of ``speculate``: speed-up by draft length, and the best of it by acceptance rate."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.speculation import SpeedupLine, acceptance_chart, batch_chart, speculation_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, distinct, plottable, rows, text
from servewise.report.wording import UNKNOWN, figure

_MOST_LINES = 7


def figures(answer: Answer) -> list[Figure]:
    """By draft length (a line a batch, or an acceptance rate), by batch, and by acceptance (a line a draft cost)."""
    return [*_lengths(answer), *_batches(answer), *_acceptances(answer)]


def _lengths(answer: Answer) -> list[Figure]:
    lines = _by_batch(rows(answer.result, "rows")) or _by_acceptance(rows(answer.result, "by_acceptance"))
    if not any(len(line.points) > 1 for line in lines):
        return []
    table = table_behind(answer, "Speed-up by draft length")
    return [Figure("Speed-up by draft length", speculation_chart(lines), answer.conditions, table)]


def _by_batch(found: Sequence[Row]) -> list[SpeedupLine]:
    batches = distinct([text(row.get("batch")) for row in found])[:_MOST_LINES]
    lines = [
        SpeedupLine(
            f"batch {batch}" if batch else "", _points([row for row in found if text(row.get("batch")) == batch], "k")
        )
        for batch in batches
    ]
    return [line for line in lines if line.points]


def _by_acceptance(found: Sequence[Row]) -> list[SpeedupLine]:
    lines = [SpeedupLine(f"a = {figure(row.get('acceptance'))}", _points(rows(row, "rows"), "k")) for row in found]
    return [line for line in lines if line.points][:_MOST_LINES]


def _points(found: Sequence[Row], key: str) -> tuple[tuple[float, float], ...]:
    points = {
        x: speedup
        for row in found
        if (x := plottable(row.get(key))) is not None and (speedup := plottable(row.get("speedup"))) is not None
        if x < 1e6 and speedup < 1e6
    }
    return tuple(sorted(points.items()))


def _batches(answer: Answer) -> list[Figure]:
    points = _points(rows(answer.result, "by_batch"), "batch")
    if len(points) < 2:
        return []
    svg = batch_chart([SpeedupLine("", points)])
    return [
        Figure("Best speed-up by batch", svg, answer.conditions, table_behind(answer, "Best draft length by batch"))
    ]


def _acceptances(answer: Answer) -> list[Figure]:
    found = rows(answer.result, "by_acceptance")
    costs = distinct([figure(row.get("draft_cost")) for row in found])[:_MOST_LINES]
    lines = [
        SpeedupLine(
            f"draft cost {cost}" if cost != UNKNOWN else "",
            _points([row for row in found if figure(row.get("draft_cost")) == cost], "acceptance"),
        )
        for cost in costs
    ]
    lines = [line for line in lines if len(line.points) > 1]
    if not lines:
        return []
    table = table_behind(answer, "Best draft length by acceptance")
    return [Figure("Best speed-up by acceptance rate", acceptance_chart(lines), answer.conditions, table)]
