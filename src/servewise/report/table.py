"""A table as data: built once from an answer, then shown on a terminal, in HTML and in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Cell = Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how a row's cell reads. ``wide``: left out on a terminal, where 80 columns are all there are.

    ``prose`` cells are left-aligned and may wrap; the others are figures, right-aligned, never wrapped.
    """

    heading: str
    cell: Cell
    prose: bool = False
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """``cells`` are rows of text under ``columns``; ``marks`` names a row's standing: good, bad or none.

    ``grouped``: rows whose first cells begin alike belong together.
    """

    title: str
    columns: tuple[Column, ...]
    cells: tuple[tuple[str, ...], ...]
    note: str = ""
    marks: tuple[str, ...] = field(default=())
    grouped: bool = False

    def ends_group(self, index: int) -> bool:
        """Whether the row after row ``index`` begins another group: its first cell differs."""
        later = self.cells[index + 1 : index + 2]
        return self.grouped and any(row[0].split()[:1] != self.cells[index][0].split()[:1] for row in later)

    def mark(self, index: int) -> str:
        """The standing of row ``index``."""
        return self.marks[index] if index < len(self.marks) else ""

    def narrow(self) -> Table:
        """The table without its wide columns."""
        kept = [index for index, column in enumerate(self.columns) if not column.wide]
        cells = tuple(tuple(row[index] for index in kept) for row in self.cells)
        return Table(
            self.title, tuple(self.columns[index] for index in kept), cells, self.note, self.marks, self.grouped
        )


def build(
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]],
    *,
    note: str = "",
    marks: Callable[[Mapping[str, Any]], str] | None = None,
    grouped: bool = False,
) -> Table:
    """The table of ``rows``; a column in which every cell is unknown is left out."""
    drawn = [tuple(column.cell(row) for column in columns) for row in rows]
    kept = [
        index for index, column in enumerate(columns) if not drawn or any(row[index] not in ("", "–") for row in drawn)
    ]
    return Table(
        title,
        tuple(columns[index] for index in kept),
        tuple(tuple(row[index] for index in kept) for row in drawn),
        note,
        tuple(marks(row) for row in rows) if marks else (),
        grouped,
    )


def facts(title: str, pairs: Sequence[tuple[str, str]], note: str = "") -> Table:
    """A table of names and values, one a row; unknown values are left out."""
    columns = (Column("", lambda row: row["name"], prose=True), Column("", lambda row: row["value"]))
    return build(title, columns, [{"name": name, "value": value} for name, value in pairs if value != "–"], note=note)
