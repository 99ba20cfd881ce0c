"""Which wait of a request was too long."""

from __future__ import annotations

from math import isnan

from servewise.measure.drive.trip import Trip
from servewise.measure.target import Timeouts

SWEEP_S = 0.05


def sweep_interval_s(timeouts: Timeouts) -> float:
    """How often to look [s]: a tenth of the shortest wait, and at least twenty times a second."""
    shortest = min(timeouts.connect_s, timeouts.first_byte_s, timeouts.idle_s, timeouts.total_s)
    return min(SWEEP_S, max(0.002, shortest / 10))


def overdue(trip: Trip, now_s: float, timeouts: Timeouts) -> str:
    """One line that says which wait was too long; empty where none was."""
    quiet_s = now_s - trip.heard_s
    if now_s - trip.began_s > timeouts.total_s:
        return f"not over after {timeouts.total_s:g} s in all"
    if isnan(trip.sent_s):
        return (
            f"no connection, or request not taken, for {timeouts.connect_s:g} s" if quiet_s > timeouts.connect_s else ""
        )
    if trip.heard_s <= trip.sent_s:
        return f"no byte of an answer for {timeouts.first_byte_s:g} s" if quiet_s > timeouts.first_byte_s else ""
    return f"nothing came for {timeouts.idle_s:g} s inside the answer" if quiet_s > timeouts.idle_s else ""
