"""When an exchange was over for its user."""

from __future__ import annotations

from math import isfinite

from servewise.measure.exchange import Exchange


def ended_s(exchange: Exchange) -> float:
    """The last moment that is known of it [s]: its end, else the last that came or went, else when it was due."""
    arrivals = (exchange.arrivals[-1].time_s,) if exchange.arrivals else ()
    known = (exchange.end_s, *arrivals, exchange.head_s, exchange.sent_s)
    return next((time_s for time_s in known if isfinite(time_s)), exchange.scheduled_s)
