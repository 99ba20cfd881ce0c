"""Tables of ``check``: what was read, and each finding with why it costs something and what to do."""

from __future__ import annotations

from servewise.report.reading import Row, items, mapping, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import UNKNOWN, count

_MARKS = {"error": "bad", "warning": "bad", "note": ""}


def tables(result: Row) -> tuple[Table, ...]:
    """The launches, the findings, then the cure of each mistake once."""
    return (_launches(result), _findings(result), _cures(result))


def _at(where: object) -> str:
    """Line and column, as far as they are known: ``12:5``."""
    found = mapping(where)
    line, column = number(found.get("line")), number(found.get("column"))
    return UNKNOWN if line is None else count(line) + (f":{count(column)}" if column is not None else "")


def _launches(result: Row) -> Table:
    columns = (
        Column("At line", lambda row: _at({"line": mapping(row.get("where")).get("line")})),
        Column("Engine", lambda row: text(row.get("engine"), UNKNOWN), prose=True),
        Column("Model", lambda row: text(row.get("model"), UNKNOWN), prose=True),
        Column("Options", lambda row: count(len(items(row.get("options"))))),
    )
    return build("Launches found", columns, rows(result, "launches"))


def _findings(result: Row) -> Table:
    columns = (
        Column("", lambda row: text(row.get("severity")), prose=True),
        Column("At", lambda row: _at(row.get("where"))),
        Column("Mistake", _mistake, prose=True),
    )
    found = rows(result, "findings")
    return build("Findings", columns, found, marks=lambda row: _MARKS.get(text(row.get("severity")), ""))


def _mistake(row: Row) -> str:
    """The code, the option that makes it, and why."""
    option = text(mapping(row.get("where")).get("option"))
    return f"{text(row.get('code'))}{f' ({option})' if option else ''}: {text(row.get('why'))}"


def _cures(result: Row) -> Table:
    """One row a mistake: a file that makes it ten times needs its cure once."""
    columns = (
        Column("Mistake", lambda row: text(row.get("code")), prose=True),
        Column("Cure", lambda row: text(row.get("cure")), prose=True),
        Column("Source", lambda row: text(row.get("source")), prose=True, wide=True),
    )
    once = {(text(row.get("code")), text(row.get("cure"))): row for row in rows(result, "findings")}
    return build("What to do", columns, list(once.values()))
