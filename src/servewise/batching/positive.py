"""Settings that cannot work are refused: the same checks for every policy."""

from __future__ import annotations

from math import isfinite

from servewise.errors import InputError, UnknownName


def positive(what: str, value: float, *, zero: bool = False) -> None:
    """Raise InputError unless ``value`` is finite and above zero (or zero, where that is allowed)."""
    if isfinite(value) and (value > 0 or (zero and value == 0)):
        return
    raise InputError(f"{what} must be a positive number, not {value!r}", hint="give 1 or more")


def one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    """Raise UnknownName unless ``value`` is one of ``known``."""
    if value not in known:
        raise UnknownName(what, str(value), known, where=what, hint=f"one of {', '.join(known)}")
