"""Tables made to fit: one too wide for the terminal is set as several, each with the row's name again."""

from __future__ import annotations

from servewise.report.table import Table

GAP = 2  # blanks between columns
_LEAST_PROSE = 16


def fitted(table: Table, width: int) -> list[Table]:
    """``table`` as one or more tables of at most ``width`` columns where its figures allow."""
    needs = [_need(table, index) for index in range(len(table.columns))]
    leading = _leading(table)
    room = width - sum(needs[index] + GAP for index in leading)
    groups: list[list[int]] = [[]]
    used = 0
    for index in (each for each in range(len(needs)) if each not in leading):
        if groups[-1] and used + needs[index] + GAP > room:
            groups.append([])
            used = 0
        groups[-1].append(index)
        used += needs[index] + GAP
    return [_taken(table, [*leading, *group], part > 0) for part, group in enumerate(groups)]


def _need(table: Table, index: int) -> int:
    widest = max([len(row[index]) for row in table.cells], default=0)
    column = table.columns[index]
    heading = max((len(word) for word in column.heading.split()), default=0)
    return max(min(widest, _LEAST_PROSE) if column.prose else widest, heading)


def _leading(table: Table) -> list[int]:
    """The columns that name a row: those before the first figure, at least one, at most two."""
    names = 0
    while names < min(2, len(table.columns)) and table.columns[names].prose:
        names += 1
    return list(range(max(1, names)))


def _taken(table: Table, indices: list[int], later: bool) -> Table:
    return Table(
        "" if later else table.title,
        tuple(table.columns[index] for index in indices),
        tuple(tuple(row[index] for index in indices) for row in table.cells),
        table.note if not later else "",
        table.marks,
        table.grouped,
    )
