"""Figures of ``bench``: latency and throughput by load, one against the other, the gaps, the run over its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.gaps import Curve, gaps_chart
from servewise.report.charts.load import LoadLine, LoadPoint, Tradeoff, load_chart, tradeoff_chart
from servewise.report.charts.timeline import Series, timeline_chart
from servewise.report.figures.pick import table_behind
from servewise.report.figures.simulate import limits_of, spreads
from servewise.report.reading import Row, distinct, interval, items, mapping, number, percentile, plottable, rows, text
from servewise.report.tables.bench import load_words

_MOST_LINES, _MOST_TIMELINES = 6, 3
_TABLE = "Latency by load"
_INTERVALS = "Bars are 95% intervals."
_GAUGES = (("running", "running", False), ("waiting", "waiting", False), ("kv_use", "KV use", True))


def figures(answer: Answer) -> list[Figure]:
    """By load where there are two loads of a kind, else the percentiles; then what the runs themselves show."""
    kind = _kind(answer.result)
    by_load = [*_latencies(answer, kind), *_throughput(answer, kind), *_tradeoffs(answer)] if kind else []
    return [*(by_load or spreads(answer)), *_gaps(answer), *_timelines(answer)]


def _kind(result: Row) -> str | None:
    """What the load is counted in: streams or requests/s, whichever has at least two values."""
    for key in ("concurrency", "rate_per_s"):
        if len({load for row in rows(result, "rows") if (load := plottable(row.get(key)))}) > 1:
            return key
    return None


def _unit(kind: str) -> str:
    return "Streams at once" if kind == "concurrency" else "Requests per second"


def _runs(answer: Answer) -> list[str]:
    """The runs side by side, one without a name where there is only one."""
    return distinct([text(row.get("run")) for row in rows(answer.result, "rows")])[:_MOST_LINES]


def _of(answer: Answer, run: str) -> list[Row]:
    return [row for row in rows(answer.result, "rows") if text(row.get("run")) == run]


def _latencies(answer: Answer, kind: str) -> Iterator[Figure]:
    limits = limits_of(answer.result)
    for metric, name in (("ttft", "TTFT"), ("tpot", "TPOT")):
        for at in ("p50", "p95"):
            lines = [
                LoadLine(run, tuple(_points(_of(answer, run), kind, _latency(f"{metric}_s", at))))
                for run in _runs(answer)
            ]
            lines = [line for line in lines if line.points]
            if lines and len({point.load for line in lines for point in line.points}) > 1:
                svg = load_chart(f"{name} {at}", lines, unit=_unit(kind), limit=limits.get((metric, at)))
                title = f"{name} {at} by load"
                yield Figure(title, svg, answer.conditions, table_behind(answer, _TABLE), _INTERVALS)


def _throughput(answer: Answer, kind: str) -> Iterator[Figure]:
    lines = [LoadLine(run, tuple(_points(_of(answer, run), kind, _tokens))) for run in _runs(answer)]
    lines = [line for line in lines if line.points]
    if lines and len({point.load for line in lines for point in line.points}) > 1:
        svg = load_chart("Output tokens/s", lines, unit=_unit(kind), in_seconds=False)
        yield Figure("Throughput by load", svg, answer.conditions, table_behind(answer, _TABLE), _INTERVALS)


Value = Callable[[Row], tuple[float | None, tuple[float, float] | None]]


def _latency(key: str, at: str) -> Value:
    return lambda row: (plottable(percentile(row.get(key), at)), interval(row.get(key), at))


def _tokens(row: Row) -> tuple[float | None, tuple[float, float] | None]:
    pair = [number(each) for each in items(row.get("ci95_output_tokens_per_s"))]
    known = len(pair) == 2 and pair[0] is not None and pair[1] is not None
    return plottable(row.get("output_tokens_per_s")), (pair[0], pair[1]) if known else None  # type: ignore[return-value]


def _points(found: Sequence[Row], kind: str, value_of: Value) -> list[LoadPoint]:
    points = []
    for row in found:
        load, (value, spread) = plottable(row.get(kind)), value_of(row)
        if load is not None and value is not None:
            kept = spread if spread and plottable(spread[0]) and plottable(spread[1]) else None
            points.append(LoadPoint(load, value, kept, row.get("stable") is not False))
    return sorted(points, key=lambda point: point.load)


def _tradeoffs(answer: Answer) -> Iterator[Figure]:
    for metric, name in (("tpot_s", "TPOT p50"), ("ttft_s", "TTFT p95")):
        lines = [(run, _tradeoff(_of(answer, run), metric, name[-3:])) for run in _runs(answer)]
        lines = [(run, points) for run, points in lines if len(points) > 1]
        if lines:
            svg = tradeoff_chart(name, lines)
            yield Figure(f"{name} against throughput", svg, answer.conditions, table_behind(answer, _TABLE))


def _tradeoff(found: Sequence[Row], key: str, at: str) -> list[Tradeoff]:
    points = []
    for row in found:
        tokens, latency = plottable(row.get("output_tokens_per_s")), plottable(percentile(row.get(key), at))
        if tokens is not None and latency is not None:
            points.append(Tradeoff(tokens, latency, load_words(row)))
    return points


def _gaps(answer: Answer) -> Iterator[Figure]:
    curves = [curve for each in rows(answer.result, "detail") if (curve := _curve(each))][:_MOST_LINES]
    if curves:
        note = "A gap is between two events of a request, whatever number of tokens an event holds."
        yield Figure(
            "Distribution of inter-token latency",
            gaps_chart(curves),
            answer.conditions,
            table_behind(answer, "Inter-token latency"),
            note,
        )


def _curve(detail: Row) -> Curve | None:
    found = mapping(detail.get("itl"))
    pairs = [
        (value, share)
        for value, share in zip(
            map(plottable, items(found.get("value_s"))), map(number, items(found.get("share"))), strict=False
        )
        if value is not None and share is not None and 0 <= share <= 1
    ]
    if len(pairs) < 2 or pairs != sorted(pairs):
        return None
    values, shares = zip(*pairs, strict=True)
    return Curve(text(detail.get("load")), values, shares)


def _timelines(answer: Answer) -> Iterator[Figure]:
    for each in rows(answer.result, "detail")[-_MOST_TIMELINES:]:
        found, load = mapping(each.get("timeline")), text(each.get("load"), "the load")
        tokens = _series("tokens/s", found, "output_tokens_per_s")
        if tokens is None or max(tokens.values) <= 0:
            continue
        server = mapping(found.get("server"))
        told = [series for key, name, share in _GAUGES if (series := _series(name, server, key, share=share))]
        client = [series for series in [_series("open at the client", found, "open")] if series]
        svg = timeline_chart(tokens, [*client, *told], _window(found), load)
        note = "Shaded: before and after the steady window. Lines have an axis of their own, from 0."
        table = table_behind(answer, "Over time")
        yield Figure(f"The run over time, {load}", svg, answer.conditions, table, note)


def _series(name: str, found: Row, key: str, *, share: bool = False) -> Series | None:
    pairs = [
        (time, max(value, 0.0))
        for time, value in zip(
            map(number, items(found.get("time_s"))), map(number, items(found.get(key))), strict=False
        )
        if time is not None and value is not None and 0 <= time < 1e9 and value < 1e12
    ]
    if len(pairs) < 2 or [time for time, _ in pairs] != sorted(time for time, _ in pairs):
        return None
    times, values = zip(*pairs, strict=True)
    return Series(name, times, values, share) if max(values) > 0 or name != "waiting" else None


def _window(found: Row) -> tuple[float, float] | None:
    pair = [number(each) for each in items(found.get("window_s"))]
    if len(pair) != 2 or pair[0] is None or pair[1] is None or not 0 <= pair[0] < pair[1]:
        return None
    return pair[0], pair[1]
