"""Figures of ``simulate``: latencies against the rate, policy by policy; percentiles at a single load."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.answer import Answer
from servewise.errors import InputError
from servewise.metrics.slo import parse_slo
from servewise.report.charts.figure import Figure
from servewise.report.charts.latency import LatencyLine, LatencyPoint, latency_chart
from servewise.report.charts.percentiles import MARKS, Spread, percentiles_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, distinct, interval, percentile, plottable, rows, text

_MOST_LINES = 7
_MOST_SPREADS = 15
_LEAST_S = 1e-12  # where an interval reaches zero: a logarithmic axis has none


def figures(answer: Answer) -> list[Figure]:
    """TTFT and TPOT against the rate (all in all, where steps are the unit of time); at a single rate, percentiles."""
    if answer.result.get("unit_step") is True:
        drawn = _latencies(answer, "policy", {"e2e": "Latency"}, in_steps=True)
    else:
        drawn = _latencies(answer, "policy", {"ttft": "TTFT", "tpot": "TPOT"})
    return drawn or spreads(answer)


def _latencies(answer: Answer, group: str, metrics: dict[str, str], *, in_steps: bool = False) -> list[Figure]:
    table = table_behind(answer, "Latency by policy and rate")
    limits = limits_of(answer.result)
    drawn = []
    for metric, name in metrics.items():
        at = next((at for at in ("p95", "p99", "p90", "p50", "mean") if (metric, at) in limits), "p95")
        lines = [_line(answer.result, value, f"{metric}_s", at, group) for value in _groups(answer.result, group)]
        lines = [line for line in lines if line.points][:_MOST_LINES]
        if len({point.rate_per_s for line in lines for point in line.points}) < 2:
            continue
        svg = latency_chart(f"{name} {at}", lines, limit_s=limits.get((metric, at)), in_steps=in_steps)
        note = "Bands are 95% intervals; bars along the top mark where each policy saturates."
        drawn.append(Figure(f"{name} {at} against the arrival rate", svg, answer.conditions, table, note))
    return drawn


def spreads(answer: Answer) -> list[Figure]:
    """The percentiles of each row's latencies, where one rate alone was asked."""
    in_steps = answer.result.get("unit_step") is True
    found = [
        Spread(" ".join(filter(None, (_load(row), name))), values)
        for key, name in (("ttft_s", "TTFT"), ("tpot_s", "TPOT"), ("e2e_s", "end to end"))
        for row in rows(answer.result, "rows")
        if (values := _percentiles(row.get(key)))
    ][:_MOST_SPREADS]
    if not found:
        return []
    table = table_behind(answer, "Latency by policy and rate")
    return [Figure("Latency percentiles", percentiles_chart(found, in_steps=in_steps), answer.conditions, table)]


def _load(row: Row) -> str:
    streams = text(row.get("concurrency"))
    return text(row.get("policy")) or (f"{streams} streams:" if streams else "")


def _percentiles(found: object) -> tuple[float, ...]:
    values = [plottable(percentile(found, name)) for name in MARKS]
    kept = tuple(value for value in values if value is not None)
    return kept if len(kept) == len(MARKS) and list(kept) == sorted(kept) else ()


def _groups(result: Row, group: str) -> list[str]:
    return distinct([text(row.get(group)) for row in rows(result, "rows")]) if group else [""]


def _line(result: Row, name: str, key: str, at: str, group: str) -> LatencyLine:
    found = [row for row in rows(result, "rows") if not group or text(row.get(group)) == name]
    points = sorted((point for row in found if (point := _point(row, key, at))), key=lambda point: point.rate_per_s)
    return LatencyLine(name, tuple(points), _knee(rows(result, "knees"), name))


def _point(row: Row, key: str, at: str) -> LatencyPoint | None:
    rate, value = plottable(row.get("rate_per_s")), plottable(percentile(row.get(key), at))
    if rate is None or value is None:
        return None
    spread = interval(row.get(key), at)
    kept = (max(spread[0], _LEAST_S), spread[1]) if spread and plottable(spread[1]) else None
    return LatencyPoint(rate, value, kept, row.get("stable") is not False)


def _knee(knees: Sequence[Row], name: str) -> tuple[float, float] | None:
    for knee in knees:
        low, high = plottable(knee.get("low_per_s")), plottable(knee.get("high_per_s"))
        if text(knee.get("policy")) == name and low is not None and high is not None and low <= high:
            return low, high
    return None


def limits_of(result: Row) -> dict[tuple[str, str], float]:
    """The SLO's bounds [s] by metric and percentile; none where it is absent or not understood."""
    found = result.get("slo")
    if isinstance(found, str):
        try:
            return {
                (bound.metric, bound.percentile): bound.limit_s
                for bound in parse_slo(found).bounds
                if plottable(bound.limit_s)
            }
        except (InputError, NotImplementedError):
            return {}
    bounds = rows(result, "slo")
    return {
        (text(bound.get("metric")), text(bound.get("percentile"))): limit
        for bound in bounds
        if (limit := plottable(bound.get("limit_s")))
    }
