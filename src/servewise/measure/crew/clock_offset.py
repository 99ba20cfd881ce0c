"""How far another host's clock is ahead of this one's, estimated from round trips, with a bound that holds.

A host's reading was made at some moment between the question and its answer here, however long each way took. So the
offset (its clock minus this one) lies between reading - answered and reading - asked: the middle is off by half a round
trip at most, and the shortest of many round trips has the tightest bound (Cristian, "Probabilistic clock
synchronization", 1989; NTP's clock filter, RFC 5905 section 10). No way is taken to be as long as the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Ping(NamedTuple):
    """A question and its answer [s]: asked and answered on this clock, the host's reading between on its own."""

    asked_s: float
    reading_s: float
    answered_s: float

    @property
    def round_trip_s(self) -> float:
        """From the question to its answer."""
        return self.answered_s - self.asked_s


@dataclass(frozen=True, slots=True)
class Offset:
    """The host's clock minus this one [s], true within ``bound_s`` at the moment ``at_s`` of this clock."""

    offset_s: float
    bound_s: float
    at_s: float
    pings: int


def offset_of(pings: Sequence[Ping]) -> Offset:
    """Of the shortest round trip.

    >>> offset_of([Ping(10.0, 110.3, 10.5), Ping(11.0, 111.01, 11.25)])
    Offset(offset_s=99.885, bound_s=0.125, at_s=11.125, pings=2)
    """
    best = min(pings, key=lambda ping: ping.round_trip_s)
    middle_s = (best.asked_s + best.answered_s) / 2
    return Offset(best.reading_s - middle_s, best.round_trip_s / 2, middle_s, len(pings))


@dataclass(frozen=True, slots=True)
class HostClock:
    """A host's clock over a run: as it was ``before``, and ``after`` (None: the host was lost)."""

    before: Offset
    after: Offset | None = None

    @property
    def drift_s(self) -> float | None:
        """By how much the offset moved, true within ``drift_bound_s``."""
        return None if self.after is None else self.after.offset_s - self.before.offset_s

    @property
    def drift_bound_s(self) -> float | None:
        """Both estimates' bounds together."""
        return None if self.after is None else self.before.bound_s + self.after.bound_s

    @property
    def bound_s(self) -> float:
        """How far a moment of the run can be off on the common clock, which knows the offset from before.

        Between the two estimates the offset is taken to move one way. Without the second one its drift is not known.
        """
        if self.after is None:
            return self.before.bound_s
        return max(self.before.bound_s, abs(self.after.offset_s - self.before.offset_s) + self.after.bound_s)
