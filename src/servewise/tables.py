"""TOML files as users write them: read whole, then checked key by key, every mistake one clear line.

``where`` always names the file and the path of tables within it. What a table may not hold is refused, never ignored.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servewise.errors import InputError, UnknownName

MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, the range in which a value of it is plausible, and an example for those who missed it."""

    name: str
    low: float
    high: float
    example: str


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; InputError with the place for one that is missing, too large or malformed."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", where=str(path)) from None
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"is larger than {MAX_FILE_BYTES:,} bytes", where=str(path), hint="is it a TOML file?")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(path), hint="is it a TOML file?") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {' '.join(str(error).split())}", where=str(path)) from None
    except (RecursionError, ValueError, OverflowError):
        raise InputError("is not TOML: nested too deep, or a number too long", where=str(path)) from None


def only(table: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    """Refuses every key that is not ``allowed``, with the nearest that is."""
    for key in table:
        if key not in allowed:
            raise UnknownName("key", key, allowed, where=where, hint=f"known keys: {', '.join(allowed)}")


def needs(table: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    """Refuses a table that lacks some of ``keys``, naming them."""
    missing = [key for key in keys if key not in table]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}", where=where)


def as_table(value: Any, where: str) -> Mapping[str, Any]:
    """``value`` as a table."""
    if not isinstance(value, Mapping):
        raise InputError(f"must be a table, not {shown(value)}", where=where)
    return value


def as_list(value: Any, where: str) -> list[Any]:
    """``value`` as a list."""
    if not isinstance(value, list):
        raise InputError(f"must be a list, not {shown(value)}", where=where)
    return value


def as_text(value: Any, where: str) -> str:
    """``value`` as text."""
    if not isinstance(value, str):
        raise InputError(f"must be text, not {shown(value)}", where=where)
    return value


def as_number(value: Any, unit: Unit, where: str) -> float:
    """``value`` as a number within the unit's plausible range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"must be a number, not {shown(value)}", where=where, hint=f"in {unit.name}: {unit.example}")
    if not unit.low <= value <= unit.high:
        raise InputError(f"{shown(value)} {unit.name} is out of range", where=where, hint=unit.example)
    return float(value)


def shown(value: Any) -> str:
    """``value`` short enough for one line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more digits than Python prints, a list nested too deep
        return "something too long to print"
    return text if len(text) <= 40 else text[:37] + "..."
