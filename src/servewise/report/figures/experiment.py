"""Figures of ``experiment serve-small``: throughput and latency by streams, a line a server and build."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.load import LoadLine, LoadPoint, load_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, distinct, interval, items, number, percentile, plottable, rows, text
from servewise.report.tables.experiment import BUILDS, PREFIX

Value = Callable[[Row], tuple[float | None, tuple[float, float] | None]]
_UNIT, _NOTE, _MOST_LINES = "Streams at once", "Bars are 95% intervals.", 8


def figures(answer: Answer) -> list[Figure]:
    """Throughput, TTFT and TPOT of the builds; TTFT with the prefix cache off and on."""
    found = rows(answer.result, "rows")
    builds = [row for row in found if row.get("part") in ("16-bit", "quantised")]
    prefix = [row for row in found if row.get("part") == "prefix"]
    return [
        *_figure(answer, "Throughput by streams", "Output tokens/s", builds, _build, _tokens, BUILDS),
        *_figure(answer, "TTFT p50 by streams", "TTFT p50", builds, _build, _latency("ttft_s"), BUILDS),
        *_figure(answer, "TPOT p50 by streams", "TPOT p50", builds, _build, _latency("tpot_s"), BUILDS),
        *_figure(answer, "TTFT p50 over a shared prefix", "TTFT p50", prefix, _cache, _latency("ttft_s"), PREFIX),
    ]


def _figure(
    answer: Answer, title: str, metric: str, found: list[Row], name: Callable[[Row], str], value: Value, table: str
) -> Iterator[Figure]:
    """The figure, where there are two loads."""
    names = distinct([name(row) for row in found])[:_MOST_LINES]
    lines = [LoadLine(each, tuple(_points([row for row in found if name(row) == each], value))) for each in names]
    lines = [line for line in lines if line.points]
    if len({point.load for line in lines for point in line.points}) > 1:
        svg = load_chart(metric, lines, unit=_UNIT, in_seconds=value is not _tokens)
        yield Figure(title, svg, answer.conditions, table_behind(answer, table), _NOTE)


def _points(found: list[Row], value: Value) -> Iterator[LoadPoint]:
    for row in sorted(found, key=lambda row: number(row.get("concurrency")) or 0.0):
        load, (middle, pair) = plottable(row.get("concurrency")), value(row)
        if load is not None and middle is not None:
            yield LoadPoint(load, middle, pair)


def _build(row: Row) -> str:
    return f"{text(row.get('server'))} {text(row.get('weights'))}"


def _cache(row: Row) -> str:
    return f"{text(row.get('server'))}, cache {'on' if row.get('prefix_cache') is True else 'off'}"


def _latency(key: str) -> Value:
    return lambda row: (plottable(percentile(row.get(key), "p50")), interval(row.get(key), "p50"))


def _tokens(row: Row) -> tuple[float | None, tuple[float, float] | None]:
    pair = [number(each) for each in items(row.get("ci95_output_tokens_per_s"))]
    known = (pair[0], pair[1]) if len(pair) == 2 and pair[0] is not None and pair[1] is not None else None
    return plottable(row.get("output_tokens_per_s")), known
