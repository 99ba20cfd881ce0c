"""The figure of ``probe quantise``: KL by bits, for each target and method its plainest way and its best."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.quantisation import QualityLine, quantisation_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, plottable, rows, text

TITLE = "Every setting"
_MOST_LINES = 6
_LEAST_KL = 1e-9  # below it two models are equal but for rounding: no place on a logarithmic axis
_Way = tuple[str, str, str]  # target, method, keys by


def figures(answer: Answer) -> list[Figure]:
    """One chart, where some way has at least two widths."""
    lines = _lines(rows(answer.result, "rows"))
    if not lines:
        return []
    drawn = quantisation_chart(lines, plottable(answer.result.get("threshold_kl")))
    return [Figure(TITLE, drawn, answer.conditions, table_behind(answer, TITLE))]


def _lines(found: list[Row]) -> list[QualityLine]:
    """A line a way: of its groups and grids the one that is best at its fewest bits."""
    shapes: dict[_Way, dict[str, list[tuple[float, float]]]] = {}
    for row in found:
        bits, kl = plottable(row.get("bits")), plottable(row.get("kl"))
        if bits is not None and kl is not None and kl > _LEAST_KL:
            way = (text(row.get("target")), text(row.get("method")), text(row.get("keys")))
            shape = f"{text(row.get('group'))} {text(row.get('grid'))}"
            shapes.setdefault(way, {}).setdefault(shape, []).append((bits, kl))
    best = {way: min((sorted(each) for each in of.values()), key=lambda line: line[0]) for way, of in shapes.items()}
    lines = [QualityLine(_name(way), tuple(line)) for way, line in best.items() if len(line) > 1]
    return lines[:_MOST_LINES]


def _name(way: _Way) -> str:
    target, method, keys = way
    return f"KV, keys by {keys}" if target == "kv" else f"{target}, {method}"
