"""Figures of ``study``: its two figures again, panel by panel, drawn from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.scales import binary_tick, percent_tick, times_tick
from servewise.report.charts.study import Scale, StudyLine, StudyPoint, study_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, distinct, plottable, rows, text
from servewise.report.tables.study import title_of

_MOST_LINES = 7
_AGREEMENT = Scale("Top-1 agreement", percent_tick)


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of the study's figures.

    From ``table`` the rows of ``quantities`` (each with the name its line bears, empty: none) are drawn over the case
    ``x``, a line for each quantity and each value of the case ``group``.
    """

    table: str
    title: str
    quantities: Mapping[str, str]
    x: str
    x_scale: Scale
    y_scale: Scale
    group: str = ""


PANELS = (
    Panel(
        "cache_work", "Positions processed with and without a KV cache",
        {"positions, no cache": "no cache", "positions, cache": "KV cache"},
        "tokens", Scale("Tokens generated after a 5-token prompt", binary_tick, base=2),
        Scale("Positions processed", base=10),
    ),
    Panel(
        "largest_batch", "Largest batch that fits", {"largest batch": ""}, "context_tokens",
        Scale("Sequence length (tokens)", binary_tick, base=2), Scale("Largest batch (sequences)", base=10), "variant",
    ),
    Panel(
        "decode_step", "Decode step: compute against memory", {"compute": "compute", "memory": "memory"}, "batch",
        Scale("Batch (sequences in one step)", base=2), Scale("Time in one step (ms)", base=10),
    ),
    Panel(
        "decode_step", "Decode step: tokens per second", {"output rate": "tokens/s"}, "batch",
        Scale("Batch (sequences in one step)", base=2), Scale("Tokens per second"),
    ),
    Panel(
        "batching", "Batching: p95 latency by policy", {"p95": "", "latency p95": ""}, "rate_per_step",
        Scale("Requests per step"), Scale("p95 latency (steps)", base=10), "policy",
    ),
    Panel(
        "batching", "Batching: median latency by policy", {"p50": "", "latency p50": ""}, "rate_per_step",
        Scale("Requests per step"), Scale("Median latency (steps)", base=10), "policy",
    ),
    Panel(
        "speculation", "Speculation: speed-up by acceptance rate", {"speed-up": "", "speedup": ""}, "acceptance",
        Scale("Acceptance rate"), Scale("Speed-up at the best K", times_tick), "draft_cost",
    ),
    Panel(
        "quantisation", "Quantisation: KL from the 16-bit model", {"KL": ""}, "bits",
        Scale("Bits"), Scale("KL divergence (nats)", base=10), "target",
    ),
    Panel(
        "quantisation", "Quantisation: top-1 agreement", {"top-1 agreement": ""}, "bits",
        Scale("Bits"), _AGREEMENT, "target",
    ),
)  # fmt: skip


def figures(answer: Answer) -> list[Figure]:
    """Each panel whose table is there with at least two points."""
    tables = {text(table.get("name")): table for table in rows(answer.result, "tables")}
    drawn = [_figure(answer, panel, tables[panel.table]) for panel in PANELS if panel.table in tables]
    return [figure for figure in drawn if figure]


def _figure(answer: Answer, panel: Panel, table: Row) -> Figure | None:
    lines = _lines(panel, rows(table, "rows"))[:_MOST_LINES]
    if not any(len(line.points) > 1 for line in lines):
        return None
    svg = study_chart(panel.title, lines, panel.x_scale, panel.y_scale)
    return Figure(panel.title, svg, answer.conditions, table_behind(answer, title_of(table)))


def _lines(panel: Panel, found: list[Row]) -> list[StudyLine]:
    wanted = [row for row in found if text(row.get("quantity")) in panel.quantities]
    keys = distinct([(text(row.get("quantity")), text(row.get(panel.group))) for row in wanted])
    lines = [
        StudyLine(_name(panel, quantity, group), _points(panel, wanted, quantity, group)) for quantity, group in keys
    ]
    return [line for line in lines if line.points]


def _name(panel: Panel, quantity: str, group: str) -> str:
    label = panel.quantities[quantity] or group
    return f"draft cost {label}" if panel.group == "draft_cost" else label


def _points(panel: Panel, found: list[Row], quantity: str, group: str) -> tuple[StudyPoint, ...]:
    points = {
        x: StudyPoint(x, ours, plottable(row.get("study")))
        for row in found
        if text(row.get("quantity")) == quantity and text(row.get(panel.group)) == group
        if (x := plottable(row.get(panel.x))) is not None and (ours := plottable(row.get("ours"))) is not None
    }
    return tuple(points[x] for x in sorted(points))
