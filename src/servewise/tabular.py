"""A result as tables of plain columns, for data frames: numbers stay numbers in SI, a column's name ends in its unit.

>>> row = {"policy": "static", "ttft_s": {"p95": 0.8, "ci95_p95": [0.7, 0.9], "n": 50}, "ci95_rate_per_s": [1, 2]}
>>> flat(row)["ttft_s_p95"], flat(row)["ttft_s_p95_high"], flat(row)["rate_per_s_low"]
(0.8, 0.9, 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
INTERVAL = "ci95"
FIRST = ("rows", "ranking", "tables")  # what a command's own table is called, where there are several
DEEPEST = 12


def tables_in(result: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Every list of rows in ``result`` by its key, the command's own table first; ``sections.plan.ranking`` within.

    Without any, the plain values of ``result`` are the only row of the table ``result``.
    """
    found = dict(_tables(result, "", DEEPEST)) or {"result": [flat(result)]}
    return dict(sorted(found.items(), key=lambda each: (each[0] not in FIRST, each[0].count("."))))


def flat(row: Mapping[str, Any]) -> Row:
    """``row`` with what is nested under joined names, intervals as ``_low`` and ``_high``; other lists left out."""
    return dict(_flat(row, "", DEEPEST))


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The rows by column, every column of one kind: whole numbers are floats where a float stands among them."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _alike([row.get(name) for row in rows]) for name in names}


def _tables(result: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, list[Row]]]:
    for key, value in result.items():
        if isinstance(value, Mapping) and depth:
            yield from _tables(value, f"{path}{key}.", depth - 1)
        elif _is_rows(value):
            yield path + key, [flat(each) for each in value]


def _is_rows(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _flat(row: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if depth:
                yield from _flat(value, f"{name}_", depth - 1)
        elif isinstance(value, (list, tuple)):
            yield from _ends(prefix, str(key), value)
        else:
            yield name, value


def _ends(prefix: str, key: str, pair: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """An interval ``ci95_NAME`` as NAME's ends; of another list nothing."""
    if key.startswith(INTERVAL) and len(pair) == 2:
        name = prefix + (key.removeprefix(f"{INTERVAL}_") if key != INTERVAL else INTERVAL)
        yield from ((f"{name}_low", pair[0]), (f"{name}_high", pair[1]))


def _alike(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [value if value is None else float(value) for value in values]
    return values if len(kinds) < 2 else [value if value is None else str(value) for value in values]
