"""How long a server that is busy asks to wait."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isnan

LONGEST_S = 3600.0


def retry_after_s(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds from a Retry-After header, a number or a date, from 0 to an hour; None where it says nothing readable.

    >>> retry_after_s("2")
    2.0
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except (ValueError, IndexError, OverflowError):
            return None
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds()
    return None if isnan(seconds) else min(max(seconds, 0.0), LONGEST_S)
