"""A table as data: built once from an answer, then shown on a terminal, in HTML and in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Cell = Callable[[Mapping[str, Any]], str]
INTERVALS = "±: how far the 95% interval reaches."


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how a row's cell reads. ``wide``: left out on a terminal too narrow for the whole table.

    ``prose`` cells are left-aligned and may wrap; the others are figures, right-aligned, never wrapped. ``brief`` is
    the cell where there is no room: a value without its interval.
    """

    heading: str
    cell: Cell
    prose: bool = False
    wide: bool = False
    brief: Cell | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """``cells`` are rows of text under ``columns``; ``marks`` names a row's standing: good, bad or none.

    ``grouped``: rows whose first cells begin alike belong together. ``briefs`` are the rows where there is little room.
    """

    title: str
    columns: tuple[Column, ...]
    cells: tuple[tuple[str, ...], ...]
    note: str = ""
    marks: tuple[str, ...] = field(default=())
    grouped: bool = False
    briefs: tuple[tuple[str, ...], ...] = field(default=())

    def ends_group(self, index: int) -> bool:
        """Whether the row after row ``index`` begins another group: its first cell differs."""
        later = self.cells[index + 1 : index + 2]
        return self.grouped and any(row[0].split()[:1] != self.cells[index][0].split()[:1] for row in later)

    def mark(self, index: int) -> str:
        """The standing of row ``index``."""
        return self.marks[index] if index < len(self.marks) else ""

    def below(self) -> str:
        """What stands under the table: its note, and what ± means where it stands in a cell."""
        spread = any(" ±" in cell or "/+" in cell for row in self.cells for cell in row)
        return " ".join(filter(None, (self.note.strip(), INTERVALS if spread else "")))

    def narrow(self) -> Table:
        """The table without its wide columns."""
        return self.taken([index for index, column in enumerate(self.columns) if not column.wide])

    def brief(self) -> Table:
        """The table with its figures alone, without their intervals."""
        return replace(self, cells=self.briefs or self.cells)

    def taken(self, indices: Sequence[int]) -> Table:
        """The table of these columns."""
        return replace(
            self,
            columns=tuple(self.columns[index] for index in indices),
            cells=_picked(self.cells, indices),
            briefs=_picked(self.briefs, indices),
        )


def _picked(rows: Sequence[Sequence[str]], indices: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row[index] for index in indices) for row in rows)


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
    drawn = tuple(tuple(column.cell(row) for column in columns) for row in rows)
    short = tuple(tuple((column.brief or column.cell)(row) for column in columns) for row in rows)
    kept = [
        index for index, column in enumerate(columns) if not drawn or any(row[index] not in ("", "–") for row in drawn)
    ]
    standing = tuple(marks(row) for row in rows) if marks else ()
    return Table(title, tuple(columns), drawn, note, standing, grouped, short).taken(kept)


def facts(title: str, pairs: Sequence[tuple[str, str]], note: str = "") -> Table:
    """A table of names and values, one a row; unknown values are left out."""
    columns = (Column("", lambda row: row["name"], prose=True), Column("", lambda row: row["value"]))
    return build(title, columns, [{"name": name, "value": value} for name, value in pairs if value != "–"], note=note)
