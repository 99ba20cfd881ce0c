"""Seconds from the run's start, for times of the program and for time stamps of the kernel."""

from __future__ import annotations

from time import monotonic_ns, time_ns

BRACKET_NS = 20_000  # a reading of both clocks that took longer was interrupted, and is not believed
STEP_NS = 200_000  # the two clocks are slewed together; a difference that moves by more was a step of the wall clock


class RunClock:
    """Monotonic time since ``start_s``; the kernel stamps in wall-clock time, which is mapped onto it.

    ``zero_ns`` is the run's start on the wall clock: kernel stamp - ``zero_ns`` is the run's time. ``follow`` reads it
    again, so that a step of the wall clock in mid-run moves no arrival; ``steps`` counts those that were seen.
    """

    __slots__ = ("_start_ns", "steps", "zero_ns")

    def __init__(self, start_s: float) -> None:
        self._start_ns = round(start_s * 1e9)
        self.steps = 0
        self.zero_ns = _surely_zero_ns(self._start_ns)

    def now(self) -> float:
        """Seconds since the start."""
        return (monotonic_ns() - self._start_ns) * 1e-9

    def follow(self) -> int:
        """Read the difference of the clocks again, and return ``zero_ns``."""
        found = _zero_ns(self._start_ns)
        if found is not None and abs(found - self.zero_ns) > STEP_NS:
            self.steps += 1
            self.zero_ns = found
        return self.zero_ns


def _zero_ns(start_ns: int) -> int | None:
    before = monotonic_ns()
    wall = time_ns()
    after = monotonic_ns()
    return wall - (before + after) // 2 + start_ns if after - before < BRACKET_NS else None


def _surely_zero_ns(start_ns: int) -> int:
    """The tightest of several readings."""
    for _ in range(1000):
        found = _zero_ns(start_ns)
        if found is not None:
            return found
    return time_ns() - monotonic_ns() + start_ns
