"""Reading an answer's result with care: a document from a file may hold anything under any key."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
_NOTHING: Row = {}
_UNSEEN = {"Cc", "Cs"}  # control characters and lone surrogates
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
LONGEST_TEXT = 2_000


def number(value: object) -> float | None:
    """``value`` as a finite float, None for all that is not a number.

    >>> number(3), number(True), number(float("nan")), number("3")
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def positive(value: object) -> float | None:
    """``value`` as a finite float above zero, as logarithmic axes need."""
    found = number(value)
    return found if found is not None and found > 0 else None


def plottable(value: object) -> float | None:
    """``value`` where an axis can hold it: between 1e-12 and 1e15; what lies beyond is no measurement of anything."""
    found = number(value)
    return found if found is not None and 1e-12 <= found <= 1e15 else None


def clean(value: str) -> str:
    """``value`` without control characters, lone surrogates and direction overrides; very long text is cut.

    >>> clean("a\\x1b[31mb")
    'a\ufffd[31mb'
    """
    if value.isascii() and value.isprintable() and len(value) <= LONGEST_TEXT:
        return value
    cut = value if len(value) <= LONGEST_TEXT else value[: LONGEST_TEXT - 1] + "…"
    return "".join(_seen(each) for each in cut)


def _seen(character: str) -> str:
    if character in "\n\t":
        return " "
    return "\ufffd" if character in _BIDI or unicodedata.category(character) in _UNSEEN else character


def text(value: object, default: str = "") -> str:
    """``value`` as one clean line of text: strings as they are, numbers shortly, a deployment by its title."""
    if isinstance(value, str):
        return clean(value) or default
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return text(value.get("title"), default)
    found = number(value)
    return default if found is None else f"{found:,.6g}"


def mapping(value: object) -> Row:
    """``value`` where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else _NOTHING


def items(value: object) -> Sequence[Any]:
    """``value`` where it is a list, else an empty one."""
    return value if isinstance(value, (list, tuple)) else ()


def rows(result: Row, key: str) -> list[Row]:
    """The mappings in the list under ``key``; whatever else stands there is passed over."""
    return [row for row in items(result.get(key)) if isinstance(row, Mapping)]


def interval(percentiles: object, name: str) -> tuple[float, float] | None:
    """The 95% interval ``ci95_<name>`` of a Percentiles document, where there is one."""
    pair = items(mapping(percentiles).get(f"ci95_{name}"))
    if len(pair) != 2:
        return None
    low, high = number(pair[0]), number(pair[1])
    return None if low is None or high is None or low > high else (low, high)


def percentile(percentiles: object, name: str) -> float | None:
    """The value ``name`` (mean, p50, p90, p95, p99) of a Percentiles document."""
    return number(mapping(percentiles).get(name))


def distinct(found: Sequence[Any]) -> list[Any]:
    """The plain values without repeats, in the order in which they first came; lists and mappings are passed over."""
    return list(dict.fromkeys(each for each in found if not isinstance(each, (list, dict))))
