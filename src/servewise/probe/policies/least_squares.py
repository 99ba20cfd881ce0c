"""Least squares with coefficients that are not negative (Lawson and Hanson 1974, chapter 23, algorithm NNLS)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TOLERANCE = 1e-10


def non_negative(matrix: Floats, target: Floats) -> Floats:
    """The x >= 0 with the least |matrix x - target|²; columns are scaled inside, so their units do not matter.

    >>> non_negative(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -1.0])).tolist()
    [2.0, 0.0]
    """
    scale = np.sqrt(np.square(matrix).sum(axis=0))
    scale[scale == 0] = 1.0
    scaled = matrix / scale
    count = scaled.shape[1]
    found, free = np.zeros(count), np.zeros(count, bool)
    for _ in range(10 * count):
        pull = scaled.T @ (target - scaled @ found)
        pull[free] = -np.inf
        if free.all() or pull.max() <= TOLERANCE * np.abs(target).max():
            break
        free[pull.argmax()] = True
        found = _settled(scaled, target, found, free)
    solution: Floats = found / scale
    return solution


def _settled(matrix: Floats, target: Floats, found: Floats, free: NDArray[np.bool_]) -> Floats:
    """The best point on the free columns, stepping back and fixing one whenever it would turn negative."""
    while True:
        best = np.zeros_like(found)
        best[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
        low = free & (best <= 0)
        if not low.any():
            return best
        steps = found[low] / np.maximum(found[low] - best[low], 1e-300)
        found = found + min(1.0, float(steps.min())) * (best - found)
        free &= found > TOLERANCE * max(1.0, float(np.abs(found).max()))
        found[~free] = 0.0
