"""What a calibration found, whatever it was fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from servewise.calibrate.error import Error, LevelError
from servewise.calibrate.evidence import Told
from servewise.steptime.coefficients import ValidRange

LEAST_SPREAD = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The coefficients, how far they are off, and where they hold. ``source``: step records or request records.

    ``dropped`` counts records that could not be used.
    """

    told: Told
    train: Error
    heldout: Error
    levels: tuple[LevelError, ...]
    valid_range: ValidRange
    source: str
    dropped: int = 0

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm of predicted / measured over load levels that the fit did not see.

        Where there is one level alone, over what was held out of it; never below a hundredth.
        """
        seen = [each.bias_left_out for each in self.levels if math.isfinite(each.bias_left_out)]
        return spread_of(seen or [each.bias for each in self.levels])


def spread_of(ratios: Sequence[float]) -> float:
    """Root of the mean square of the logarithms of ``ratios``.

    >>> round(spread_of([1.1, 1 / 1.1]), 4)
    0.0953
    """
    squares = [math.log(each) ** 2 for each in ratios if math.isfinite(each) and each > 0]
    return max(LEAST_SPREAD, math.sqrt(sum(squares) / len(squares))) if squares else LEAST_SPREAD
