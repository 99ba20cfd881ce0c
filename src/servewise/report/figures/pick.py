"""The tables that stand behind figures, found by title among an answer's tables."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.table import Table
from servewise.report.tables import tables_of


def table_behind(answer: Answer, title: str) -> Table:
    """The answer's table of that title, or its first."""
    found = tables_of(answer.command, answer.result)
    return next((table for table in found if table.title == title), found[0] if found else Table(title, (), ()))
