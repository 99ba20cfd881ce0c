"""Values out of other people's JSON: of the right kind, or one clear line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from servewise.errors import InputError

Row = Mapping[str, Any]
MOST = 2.0**53


def table(value: object, where: str) -> Row:
    """A JSON object."""
    if not isinstance(value, Mapping):
        raise InputError("must be an object", where=where)
    return value


def inner(row: Row, *names: str) -> Row:
    """The object under ``names``, one within the other; empty where there is none."""
    found: object = row
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def listed(row: Row, name: str, where: str) -> list[Any]:
    """The list under ``name``; InputError where something else stands there, or nothing."""
    value = row.get(name)
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list", where=where)
    return value


def number(row: Row, name: str, where: str) -> float:
    """The number under ``name``; NaN where there is none (absent or null)."""
    return as_number(row.get(name), f"{where}: {name}")


def as_number(value: object, where: str) -> float:
    """``value`` as a float; NaN for null."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e30:
        raise InputError("must be a number", where=where)
    return float(value)


def key_of(value: object) -> float:
    """``value`` to sort by: 0 for what is no number of a usual size."""
    usual = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MOST
    return float(value) if usual else 0.0  # type: ignore[arg-type]


def whole(row: Row, name: str, where: str) -> int:
    """The count under ``name``; 0 where there is none."""
    found = number(row, name, where)
    if math.isnan(found):
        return 0
    if found != int(found) or not 0 <= found < MOST:
        raise InputError(f"{name} must be a whole number from 0 up", where=where)
    return int(found)


def words(row: Row, name: str) -> str | None:
    """The text under ``name``; None where there is none."""
    value = row.get(name)
    return " ".join(value.split())[:200] or None if isinstance(value, str) else None
