"""Figures of ``probe policies``: end-to-end latency against the rate, measured and predicted."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.latency import LatencyLine, LatencyPoint, latency_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, distinct, interval, mapping, percentile, plottable, rows, text
from servewise.report.tables.probe_policies import TITLE

_MOST_POLICIES = 3
_LEAST_S = 1e-12  # where an interval reaches zero: a logarithmic axis has none


def figures(answer: Answer) -> list[Figure]:
    """p50 and p95, a line a policy and kind."""
    drawn = []
    for at in ("p50", "p95"):
        names = distinct([text(row.get("policy")) for row in rows(answer.result, "rows")])[:_MOST_POLICIES]
        lines = [_line(answer.result, name, kind, at) for name in names for kind in ("measured", "predicted")]
        lines = [line for line in lines if line.points]
        if len({point.rate_per_s for line in lines for point in line.points}) < 2:
            continue
        title = f"End-to-end {at} against the arrival rate, measured and predicted"
        svg = latency_chart(f"End to end {at}", lines)
        note = "Bands are 95% intervals over the requests of a run. Measured and predicted saw the same requests."
        drawn.append(Figure(title, svg, answer.conditions, table_behind(answer, TITLE), note))
    return drawn


def _line(result: Row, policy: str, kind: str, at: str) -> LatencyLine:
    found = [row for row in rows(result, "rows") if text(row.get("policy")) == policy]
    points = {point.rate_per_s: point for row in found if (point := _point(row, kind, at))}
    name = policy if kind == "measured" else f"{policy}, predicted"
    return LatencyLine(name, tuple(points[rate] for rate in sorted(points)))


def _point(row: Row, kind: str, at: str) -> LatencyPoint | None:
    latency = mapping(row.get(kind)).get("e2e_s")
    rate, value = plottable(row.get("rate_per_s")), plottable(percentile(latency, at))
    if rate is None or value is None:
        return None
    ends = interval(latency, at) if kind == "measured" else None
    known = (max(ends[0], _LEAST_S), ends[1]) if ends and plottable(ends[1]) else None
    return LatencyPoint(rate, value, known, row.get("below_saturation") is not False)
