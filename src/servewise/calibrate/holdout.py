"""Stretches of each run that are kept out of the fit, spread evenly over its time."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

BLOCKS = 20  # stretches a run is cut into


@dataclass(frozen=True, slots=True)
class Holdout:
    """``share`` of the BLOCKS stretches of a run are held out, evenly spaced.

    >>> [block for block in range(BLOCKS) if Holdout(0.2).holds(block)]
    [4, 9, 14, 19]
    """

    share: float

    def holds(self, block: int) -> bool:
        """Whether that stretch is kept out of the fit."""
        return floor((block + 1) * self.share + 1e-9) > floor(block * self.share + 1e-9)

    def fits(self, block: int) -> bool:
        """Whether that stretch is fitted."""
        return not self.holds(block)


def everything(_: int) -> bool:
    """Every stretch."""
    return True


def block_of(place: int, count: int) -> int:
    """The stretch in which number ``place`` of ``count`` lies."""
    return place * BLOCKS // count
