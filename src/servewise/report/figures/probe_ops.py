"""Figures of ``probe ops``: step time by batch, and the rates of the model's products by tokens."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.scales import binary_tick, count_tick, seconds_tick
from servewise.report.charts.study import Scale, StudyLine, StudyPoint, study_chart
from servewise.report.figures.pick import table_behind
from servewise.report.reading import Row, distinct, plottable, rows, text

_MOST_LINES = 7
_TERA = 1e12


def figures(answer: Answer) -> list[Figure]:
    """A line a context, and a line a product and dtype; lines of at least two points."""
    decode = [row for row in rows(answer.result, "steps") if row.get("phase") == "decode"]
    steps = [
        _line([row for row in decode if row.get("context_tokens") == context], "batch", "step_s", f"{context} tokens")
        for context in distinct([row.get("context_tokens") for row in decode])
    ]
    products = [row for row in rows(answer.result, "products") if row.get("kind") == "product"]
    names = distinct([(text(row.get("name")), text(row.get("dtype"))) for row in products])
    rates = [
        _line([row for row in products if (text(row.get("name")), text(row.get("dtype"))) == name], "tokens",
              "flops_per_s", " ".join(name), 1 / _TERA)
        for name in names
    ]  # fmt: skip
    batch, tokens = Scale("Batch", binary_tick, 2), Scale("Tokens", binary_tick, 2)
    drawn = [
        ("Decode step against batch", steps, batch, Scale("Step", seconds_tick), "Steps of the engine's model"),
        ("Rate of each product", rates, tokens, Scale("TFLOP/s", count_tick, 10), "Matrix products"),
    ]
    return [figure for each in drawn if (figure := _figure(answer, *each))]


def _figure(answer: Answer, title: str, lines: list[StudyLine], x: Scale, y: Scale, table: str) -> Figure | None:
    kept = [line for line in lines if len(line.points) > 1][:_MOST_LINES]
    if not kept:
        return None
    return Figure(title, study_chart(title, kept, x, y), answer.conditions, table_behind(answer, table))


def _line(found: list[Row], x_key: str, y_key: str, name: str, scale: float = 1.0) -> StudyLine:
    points = {
        x: StudyPoint(x, y * scale)
        for row in found
        if (x := plottable(row.get(x_key))) is not None and (y := plottable(row.get(y_key))) is not None
    }
    return StudyLine(name, tuple(points[x] for x in sorted(points)))
