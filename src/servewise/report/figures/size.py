"""Figures of ``size``: what takes the memory."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.charts.memory import Part, memory_chart
from servewise.report.figures.pick import table_behind
from servewise.report.figures.precision import precision_figures
from servewise.report.reading import plottable, rows
from servewise.report.tables.size import part_name

_MOST_PARTS = 12


def figures(answer: Answer) -> list[Figure]:
    """The memory bar, and the precisions where they are given."""
    return [*_memory(answer), *precision_figures(answer)]


def _memory(answer: Answer) -> list[Figure]:
    result = answer.result
    parts = [
        Part(part_name(term.get("name")), size)
        for term in rows(result, "breakdown")[:_MOST_PARTS]
        if (size := plottable(term.get("bytes"))) is not None and size >= 1
    ]
    short = plottable(result.get("short_by_bytes")) or 0.0 if result.get("fits") is False else 0.0
    total = sum(part.bytes for part in parts)
    memory = plottable(result.get("memory_bytes")) or (total - short if total > short else total)
    if not parts:
        return []
    title = "Memory of one accelerator"
    return [Figure(title, memory_chart(parts, memory, short), answer.conditions, table_behind(answer, title))]
