"""Figures of ``fleet``: latencies against the rate by layout and router, and the replicas over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.replicas import Count, replicas_chart
from servewise.report.figures import simulate
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, items, number, rows
from servewise.report.tables.fleet import EACH, LATENCY, name

_MOST_TIMELINES = 3


def figures(answer: Answer) -> list[Figure]:
    """As ``simulate`` draws policies, with layouts and routers in their place; then whatever came and went."""
    named = [dict(row) | {"policy": name(row)} for row in rows(answer.result, "rows")]
    drawn = simulate.figures(replace(answer, result=dict(answer.result) | {"rows": named}))
    table = table_behind(answer, LATENCY)
    bands = "Bands are 95% intervals."
    return [
        *(replace(each, table=table, note=bands if each.note else "") for each in drawn),
        *list(_timelines(answer))[:_MOST_TIMELINES],
    ]


def _timelines(answer: Answer) -> Iterator[Figure]:
    for row in rows(answer.result, "rows"):
        counts = _counts(row)
        if len(counts) > 1:
            last_s = counts[-1].at_s
            end_s = max(
                (_there_s(one) for one in rows(answer.result, "replicas") if name(one) == name(row)), default=0.0
            )
            svg = replicas_chart(counts, max(end_s, last_s * 1.02, 1e-9), name(row))
            table = table_behind(answer, EACH)
            yield Figure(f"Replicas over time, {name(row)}", svg, answer.conditions, table)


def _counts(row: Row) -> list[Count]:
    found = []
    for each in items(row.get("replicas_over_time")):
        values = [number(value) for value in items(each)]
        if len(values) != len(Count._fields) or None in values:
            return []
        found.append(Count(*(value for value in values if value is not None)))
    return found if all(one.at_s <= other.at_s for one, other in pairwise(found)) else []


def _there_s(row: Row) -> float:
    return number(row.get("paid_s")) or 0.0
