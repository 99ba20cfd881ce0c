"""Tables of ``check``: what was read, and each finding with why it costs something and what to do."""

from __future__ import annotations

from servewise.report.reading import Row, items, mapping, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import UNKNOWN, count

_MARKS = {"error": "bad", "warning": "bad", "note": ""}


def tables(result: Row) -> tuple[Table, ...]:
    """The launches, the findings, then the cure of each mistake once."""
    return (_launches(result), _findings(result), _cures(result))


def place(where: object) -> str:
    """``12:5 --option``, as far as it is known."""
    found = mapping(where)
    line, column = number(found.get("line")), number(found.get("column"))
    at = "" if line is None else count(line) + (f":{count(column)}" if column is not None else "")
    return " ".join(part for part in (at, text(found.get("option"))) if part) or UNKNOWN


def _launches(result: Row) -> Table:
    columns = (
        Column("At line", lambda row: place({"line": mapping(row.get("where")).get("line")})),
        Column("Engine", lambda row: text(row.get("engine"), UNKNOWN), prose=True),
        Column("Model", lambda row: text(row.get("model"), UNKNOWN), prose=True),
        Column("Options", lambda row: count(len(items(row.get("options"))))),
    )
    return build("Launches found", columns, rows(result, "launches"))


def _findings(result: Row) -> Table:
    columns = (
        Column("", lambda row: text(row.get("severity")), prose=True),
        Column("Where", lambda row: place(row.get("where")), prose=True),
        Column("Mistake", lambda row: text(row.get("code")), prose=True),
        Column("Why", lambda row: text(row.get("why")), prose=True),
    )
    found = rows(result, "findings")
    return build("Findings", columns, found, marks=lambda row: _MARKS.get(text(row.get("severity")), ""))


def _cures(result: Row) -> Table:
    """One row a mistake: a file that makes it ten times needs its cure once."""
    columns = (
        Column("Mistake", lambda row: text(row.get("code")), prose=True),
        Column("Cure", lambda row: text(row.get("cure")), prose=True),
        Column("Source", lambda row: text(row.get("source")), prose=True, wide=True),
    )
    once = {(text(row.get("code")), text(row.get("cure"))): row for row in rows(result, "findings")}
    return build("What to do", columns, list(once.values()))
