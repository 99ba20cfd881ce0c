"""The limits on what a workload may say, and the one line that a user gets when a value is outside them."""

from __future__ import annotations

import math

from servewise.errors import InputError

MAX_TOKENS = 100_000_000  # no model's context is near it: a larger length is a mistake in units
MAX_SECONDS = 1e9  # 30 years
MAX_RATE_PER_S = 1e9
MIN_RATE_PER_S = 1e-300  # what is below overflows as a gap between arrivals


def tokens(value: object, what: str, *, where: str = "", least: int = 1) -> int:
    """``value`` as a whole number of tokens (or of requests) from ``least`` to 100 million."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value in (math.inf, -math.inf) or is_nan(value):
        raise InputError(f"{what} must be a whole number, not {shown(value)}", where=where)
    if value != int(value) or not least <= value <= MAX_TOKENS:
        raise InputError(
            f"{what} must be a whole number from {least} to {MAX_TOKENS:,}, not {shown(value)}", where=where
        )
    return int(value)


def is_nan(value: float) -> bool:
    """Whether ``value`` is not a number (an integer of any size is one)."""
    return isinstance(value, float) and math.isnan(value)


def positive(value: object, what: str, *, most: float = MAX_RATE_PER_S, where: str = "", unit: str = "") -> float:
    """``value`` as a number above 0 and at most ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        hint = f"in {unit}" if unit else ""
        raise InputError(
            f"{what} must be a number above 0 (at most {most:g}), not {shown(value)}", where=where, hint=hint
        )
    return float(value)


def rate(value: object, *, where: str = "") -> float:
    """``value`` as an arrival rate [requests/s]; zero is refused, since nothing would ever arrive."""
    found = positive(value, "the arrival rate", where=where, unit="requests per second")
    if found < MIN_RATE_PER_S:
        raise InputError(f"the arrival rate must be {MIN_RATE_PER_S:g} or more, not {shown(value)}", where=where)
    return found


def share(value: object, what: str, *, where: str = "") -> float:
    """``value`` as a share from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{what} must be a share from 0 to 1, not {shown(value)}", where=where)
    return float(value)


def shown(value: object) -> str:
    """``value`` short enough for an error line.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    if isinstance(value, str) and len(value) > 40:
        return repr(value[:40] + "...")
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of thousands of digits, nesting without end
        return type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}..."
