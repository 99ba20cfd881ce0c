"""When an exchange was over for its user."""

from __future__ import annotations

from math import isfinite

from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome


def ended_s(exchange: Exchange, seen_s: float) -> float:
    """When it was over [s]: the answer's last byte, or of a failure the moment when it was known to have failed.

    A failure can come long after the last byte (a timeout) or without any (no connection): it is known at ``seen_s``,
    the latest time that its schedule was asked at, if not later.
    """
    if exchange.outcome is Outcome.COMPLETED and isfinite(exchange.end_s):
        return exchange.end_s
    known = exchange.scheduled_s, exchange.sent_s, exchange.head_s, exchange.end_s, seen_s
    return max(time_s for time_s in known if isfinite(time_s))
