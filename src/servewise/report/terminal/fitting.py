"""Tables made to fit: with all columns where there is room, else fewer, else set as several under one name."""

from __future__ import annotations

import re
from dataclasses import replace

from servewise.report.table import Table

GAP = 2  # blanks between columns
_SPREAD = re.compile(r"(\S.*) ([±>-]\S*%)")  # a value and its interval, as wording.within writes it
_LEAST_PROSE = 16
_MOST_PROSE = 36  # prose wider than that may wrap rather than cost a table its columns


def fitted(table: Table, width: int) -> list[Table]:
    """``table`` as one or more tables of at most ``width`` columns where its figures allow.

    In one piece where it can be: with the wide columns for which there is room, or without them, or without intervals
    too. Else in parts, each with the row's name again.
    """
    even = replace(table, cells=_even(table))
    for choice in (_roomy(even, width), even.narrow(), table.narrow().brief()):
        if choice is not None and _breadth(choice, _LEAST_PROSE) <= width:
            return [choice]
    return _parts(table.narrow().brief(), width)


def _roomy(table: Table, width: int) -> Table | None:
    """The table with as many of its wide columns as there is room for, in order; None where there is for none."""
    kept = [index for index, column in enumerate(table.columns) if not column.wide]
    found = None
    for index in (each for each, column in enumerate(table.columns) if column.wide):
        wider = table.taken(sorted([*kept, index]))
        if _breadth(wider, _MOST_PROSE) <= width:
            kept.append(index)
            found = wider
    return found


def _even(table: Table) -> tuple[tuple[str, ...], ...]:
    """The cells with the intervals of a column one under the other."""
    columns = [list(each) for each in zip(*table.cells, strict=True)]
    return tuple(zip(*(_aligned(each) for each in columns), strict=True))


def _aligned(cells: list[str]) -> list[str]:
    split = [_SPREAD.fullmatch(cell) for cell in cells]
    if not any(split):
        return cells
    longest = max(len(found[2]) for found in split if found)
    pairs = zip(cells, split, strict=True)
    return [f"{found[1]} {found[2]:>{longest}}" if found else f"{cell} {'':{longest}}" for cell, found in pairs]


def _breadth(table: Table, prose: int) -> int:
    """The columns that the table takes with its prose at most ``prose`` wide."""
    headings = [0 if each.prose else len(each.heading) for each in table.columns]
    return sum(max(_need(table, place, prose), heading) + GAP for place, heading in enumerate(headings)) - GAP


def _parts(table: Table, width: int) -> list[Table]:
    needs = [_need(table, index, _LEAST_PROSE) for index in range(len(table.columns))]
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


def _need(table: Table, index: int, prose: int) -> int:
    widest = max([len(row[index]) for row in table.cells], default=0)
    column = table.columns[index]
    heading = max((len(word) for word in column.heading.split()), default=0)
    return max(min(widest, prose) if column.prose else widest, heading)


def _leading(table: Table) -> list[int]:
    """The columns that name a row: those before the first figure, at least one, at most two."""
    names = 0
    while names < min(2, len(table.columns)) and table.columns[names].prose:
        names += 1
    return list(range(max(1, names)))


def _taken(table: Table, indices: list[int], later: bool) -> Table:
    part = table.taken(indices)
    return replace(part, title="", note="") if later else part
