"""The table of what a kept run was made by: the command line, and the files that it read."""

from __future__ import annotations

from servewise.report.reading import Row, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import count


def tables(result: Row) -> tuple[Table, ...]:
    """Nothing where the answer is of no kept run."""
    found = [line for each in rows(result, "made_by") for line in _lines(each)]
    columns = (
        Column("", lambda row: text(row["what"]), prose=True),
        Column("", lambda row: text(row["is"]), prose=True),
    )
    return (build("What made it", columns, found),) if found else ()


def _lines(made: Row) -> list[dict[str, str]]:
    files = [
        {
            "what": text(each.get("of"), "file"),
            "is": f"{text(each.get('name'))} ({count(each.get('bytes'))} bytes, SHA-256 {text(each.get('sha256'))})",
        }
        for each in rows(made, "sources")
    ]
    return [{"what": "command", "is": text(made.get("command"))}, *files]
