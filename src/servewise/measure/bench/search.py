"""The highest load at which an SLO still holds, and the knee as an interval.

From a first level by doubling or halving until one holds and a higher one fails; then the geometric middle (of whole
levels the nearest whole one), until the two are within the wanted precision. It takes for granted that what fails at a
level fails at every higher one; each level is measured by as many repeats as there are, and where they do not agree it
says so: the knee then reaches from the highest level that held in every repeat, below all that ever failed, to the
lowest that failed in every repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

PRECISION = 0.05
MOST_TRIES = 40
MOST_RATE, LEAST_RATE = 1e5, 1e-3
MOST_STREAMS = 16_384


@dataclass(frozen=True, slots=True)
class Tried:
    """A level (requests/s, or streams) and how many of its repeats kept the SLO; ``held``: their pooled figures do.

    ``alone``: no request met another, so that no lower level can be better.
    """

    level: float
    kept: int
    repeats: int
    held: bool
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Knee:
    """``best`` is the highest level whose pooled figures keep the SLO with all below it, 0 where none does.

    The knee lies between ``low`` and ``high`` (infinite where no level failed); ``tries`` are in order.
    """

    best: float
    low: float
    high: float
    tries: tuple[Tried, ...]

    @property
    def monotonic(self) -> bool:
        """Whether no level held above one that failed."""
        failed = [each.level for each in self.tries if not each.held]
        return not any(each.held and each.level > min(failed, default=math.inf) for each in self.tries)


class Search:
    """One search, level by level. ``whole``: levels are streams, not rates."""

    def __init__(self, try_level: Callable[[float], Tried], *, whole: bool, precision: float = PRECISION) -> None:
        self._try, self._whole, self._precision = try_level, whole, precision
        self._least, self._most = (1.0, float(MOST_STREAMS)) if whole else (LEAST_RATE, MOST_RATE)
        self.tries: dict[float, Tried] = {}

    def run(self, first: float) -> Knee:
        """Search from ``first``; whoever stops it in the middle (an exception) finds what was tried in ``knee``."""
        low, high = self._bracket(min(max(first, self._least), self._most))
        while low > 0 and high < math.inf and len(self.tries) < MOST_TRIES:
            middle = self._between(low, high)
            if middle is None:
                break
            low, high = (middle, high) if self._holds(middle) else (low, middle)
        return self.knee()

    def knee(self) -> Knee:
        """What is known from the levels tried so far."""
        tries = tuple(self.tries.values())
        failed = min((each.level for each in tries if not each.held), default=math.inf)
        doubtful = min((each.level for each in tries if each.kept < each.repeats), default=math.inf)
        best = max((each.level for each in tries if each.held and each.level < failed), default=0.0)
        low = max((each.level for each in tries if each.kept == each.repeats and each.level < doubtful), default=0.0)
        high = min((each.level for each in tries if each.kept == 0 and each.level > best), default=math.inf)
        return Knee(best, min(low, best), high, tries)

    def _holds(self, level: float) -> bool:
        if level not in self.tries:
            self.tries[level] = self._try(level)
        return self.tries[level].held

    def _bracket(self, first: float) -> tuple[float, float]:
        """(a level that holds, or 0; one above it that fails, or infinity)."""
        step: Literal[-1, 1] = 1 if self._holds(first) else -1
        level = first
        while len(self.tries) < MOST_TRIES and not (step < 0 and self.tries[level].alone):
            following = self._rounded(min(max(level * 2.0**step, self._least), self._most))
            if following == level:
                break
            if self._holds(following) == (step < 0):
                return (following, level) if step < 0 else (level, following)
            level = following
        return (level, math.inf) if step > 0 else (0.0, level)

    def _between(self, low: float, high: float) -> float | None:
        if high <= low * (1 + self._precision):
            return None
        middle = self._rounded(math.sqrt(low * high))
        return middle if low < middle < high else None

    def _rounded(self, level: float) -> float:
        """Whole streams; rates to three digits, so that a level can be asked for again as it is printed."""
        return float(round(level)) if self._whole else float(f"{level:.3g}")
