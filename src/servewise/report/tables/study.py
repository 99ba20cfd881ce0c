"""Tables of ``study``: each of the study's tables again, its figures beside ours, with a verdict a row."""

from __future__ import annotations

from servewise.report.captions import sentence
from servewise.report.reading import Row, items, mapping, number, rows, text
from servewise.report.table import Cell, Column, Table, build
from servewise.report.wording import UNKNOWN, figure

_JUDGEMENT = (
    "quantity", "unit", "study", "study_printed", "ours", "interval", "tolerance", "agrees", "note",
)  # fmt: skip
_VERDICT = {True: "agrees", False: "differs", None: "not judged"}


def tables(result: Row) -> tuple[Table, ...]:
    """One table for each of the study's."""
    return tuple(_table(table) for table in rows(result, "tables"))


def title_of(table: Row) -> str:
    """A table's title, or its name."""
    return text(table.get("title")) or text(table.get("name"), "Table")


def _table(table: Row) -> Table:
    found = rows(table, "rows")
    labels = [key for key in dict.fromkeys(key for row in found for key in row) if key not in _JUDGEMENT]
    columns = (
        *(Column(_heading(key), _cell(key), prose=True) for key in labels),
        Column("Quantity", lambda row: text(row.get("quantity")), prose=True),
        Column("Study", lambda row: text(row.get("study_printed")) or value(row.get("study"))),
        Column("Ours", _ours),
        Column("Unit", lambda row: text(row.get("unit")), prose=True),
        Column("Interval of ours", lambda row: _interval(row.get("interval")), wide=True),
        Column("Agrees when", lambda row: text(row.get("tolerance")), prose=True, wide=True),
        Column("Verdict", lambda row: verdict(row.get("agrees")), prose=True),
        Column("Note", lambda row: text(row.get("note")), prose=True, wide=True),
    )
    return build(title_of(table), columns, found, note=sentence(text(table.get("note"))), marks=_mark)


def _heading(key: str) -> str:
    words = key.replace("_", " ")
    return words[:1].upper() + words[1:]


def _cell(key: str) -> Cell:
    def cell(row: Row) -> str:
        return value(row.get(key)) if row.get(key) is not None else ""

    return cell


def _interval(pair: object) -> str:
    ends = [number(each) for each in items(pair)]
    return (
        f"{figure(ends[0], digits=4)} to {figure(ends[1], digits=4)}"
        if len(ends) == 2 and None not in ends
        else UNKNOWN
    )


def _ours(row: Row) -> str:
    """With a digit more than the study prints; a statement holds or does not."""
    ours = number(row.get("ours"))
    if ours is None:
        return value(row.get("ours"))
    if row.get("study_printed") == "holds":
        return "holds" if ours else "does not hold"
    return figure(ours, digits=4)


def _mark(row: Row) -> str:
    return "bad" if row.get("agrees") is False else ""


def verdict(agrees: object) -> str:
    """Agrees, differs, not judged; a text stands as it is."""
    return _VERDICT[agrees] if agrees is None or isinstance(agrees, bool) else text(agrees, UNKNOWN)


def value(found: object) -> str:
    """A figure, a text, or several of them separated by slashes."""
    if isinstance(found, str):
        return text(found, UNKNOWN)
    if isinstance(found, bool):
        return "yes" if found else "no"
    if mapping(found):
        return ", ".join(f"{text(key)} {value(item)}" for key, item in mapping(found).items())
    parts = items(found)
    if parts:
        return " / ".join(value(part) for part in parts)
    return figure(found) if number(found) is not None else UNKNOWN
