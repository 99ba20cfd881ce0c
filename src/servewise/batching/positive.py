"""Limits must be positive: one check for every policy."""

from __future__ import annotations

from math import isfinite

from servewise.errors import InputError


def positive(what: str, value: float, *, zero: bool = False) -> None:
    """Raise InputError unless ``value`` is finite and above zero (or zero, where that is allowed)."""
    if isfinite(value) and (value > 0 or (zero and value == 0)):
        return
    raise InputError(f"{what} must be a positive number, not {value!r}", hint="give 1 or more")
