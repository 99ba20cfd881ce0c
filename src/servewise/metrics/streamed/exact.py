"""Sums that are rounded once: the same in any order and in any parts, as ``math.fsum`` of all the numbers."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

DIGITS, HALF = 53, 26  # bits of a double's significand, and of its lower part here


class ExactSum:
    """The sum of the finite numbers that were added."""

    def __init__(self) -> None:
        self._wholes: defaultdict[int, int] = defaultdict(int)  # by exponent: how many units of it

    def add(self, values: NDArray[np.float64]) -> None:
        """Add all of ``values``, 2^36 at most."""
        significands, exponents = np.frexp(values)
        wholes = (significands * 2.0**DIGITS).astype(np.int64)
        for exponent in np.unique(exponents).tolist():
            here = wholes[exponents == exponent]
            high, low = int((here >> HALF).sum()), int((here & ((1 << HALF) - 1)).sum())
            self._wholes[exponent - DIGITS] += (high << HALF) + low

    @property
    def value(self) -> float:
        """The double nearest to the sum."""
        if not self._wholes:
            return 0.0
        least = min(self._wholes)
        whole = sum(count << (exponent - least) for exponent, count in self._wholes.items())
        return float(whole << least) if least >= 0 else whole / (1 << -least)
