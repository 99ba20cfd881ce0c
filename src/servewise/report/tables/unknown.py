"""Tables of a command that has no drawing of its own: its plain values and its lists of rows."""

from __future__ import annotations

from collections.abc import Mapping

from servewise.report.reading import Row, items, number, rows
from servewise.report.table import Column, Table, build, facts
from servewise.report.tables.study import value
from servewise.report.wording import by_key


def tables(result: Row) -> tuple[Table, ...]:
    """The single values as one table, then each list of rows as its own."""
    single = [(_words(key), _value(key, item)) for key, item in result.items() if _is_single(item)]
    lists = [key for key, item in result.items() if any(isinstance(row, Mapping) for row in items(item))]
    return (facts("Result", single), *(_rows(key, rows(result, key)) for key in lists))


def _is_single(item: object) -> bool:
    return isinstance(item, str) or number(item) is not None or isinstance(item, bool)


def _rows(name: str, found: list[Row]) -> Table:
    keys = list(dict.fromkeys(key for row in found for key in row))
    return build(_words(name), [_column(key) for key in keys], found)


def _column(key: str) -> Column:
    return Column(_words(key), lambda row: _value(key, row.get(key)), prose=True)


def _value(key: str, item: object) -> str:
    return by_key(key, item) if number(item) is not None else value(item)


def _words(key: str) -> str:
    words = key.replace("_", " ")
    return words[:1].upper() + words[1:]
