"""Figures of ``study``: drawn from its tables."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.figure import Figure


def figures(answer: Answer) -> list[Figure]:
    """None yet."""
    return []
