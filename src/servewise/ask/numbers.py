"""Numbers as users give them, checked: each mistake is one clear line that names the setting."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

from servewise.errors import InputError

T = TypeVar("T")

MOST = 1e24  # as for the accelerators' own numbers; beyond it arithmetic would only pretend
MOST_COUNT = 10**9


def whole(value: object, where: str, *, least: int = 1, most: int = MOST_COUNT) -> int:
    """``value`` as a whole number from ``least`` to ``most``; InputError otherwise.

    >>> whole(8, "batch")
    8
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"must be a whole number from {least} to {most}, not {value!r}", where=where)
    return value


def positive(value: object, where: str, *, most: float = MOST) -> float:
    """``value`` as a finite number above zero; InputError otherwise."""
    number = finite(value, where)
    if not 0 < number <= most:
        raise InputError(f"must be a number above 0 and at most {most:g}, not {value!r}", where=where)
    return number


def share(value: object, where: str) -> float:
    """``value`` as a share from 0 to 1; InputError otherwise."""
    number = finite(value, where)
    if not 0 <= number <= 1:
        raise InputError(f"must be a number from 0 to 1, not {value!r}", where=where)
    return number


def wholes(values: int | Iterable[int], where: str) -> tuple[int, ...]:
    """One whole number or several, at least one; repeats are dropped, order kept."""
    each = (values,) if isinstance(values, (int, float, str)) else tuple(values)
    return _some(tuple(whole(value, where) for value in each), where)


def positives(values: float | Iterable[float], where: str) -> tuple[float, ...]:
    """One positive number or several, at least one; repeats are dropped, order kept."""
    each = (values,) if isinstance(values, (int, float, str)) else tuple(values)
    return _some(tuple(positive(value, where) for value in each), where)


def finite(value: object, where: str) -> float:
    """``value`` as a finite number; InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"must be a finite number, not {value!r}", where=where)
    return float(value)


def _some(values: tuple[T, ...], where: str) -> tuple[T, ...]:
    if not values:
        raise InputError("at least one number is needed", where=where)
    return tuple(dict.fromkeys(values))
