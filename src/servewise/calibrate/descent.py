"""Least squares within bounds by damped Gauss-Newton steps (Levenberg 1944, Marquardt 1963), with finite differences.

Coordinates that stand at a bound and are pulled beyond it are held there for the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Values = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Descent:
    """Where the descent ended: the point, the values there, and their derivatives by each coordinate."""

    point: Floats
    values: Floats
    jacobian: Floats


def descend(
    values: Values,
    target: Floats,
    weights: Floats,
    start: Floats,
    bounds: tuple[Floats, Floats],
    *,
    rounds: int = 25,
    step: float = 1e-4,
) -> Descent:
    """The point with the least sum of (weights x (target - values))², from ``start``; ``step`` of the differences.

    >>> line = lambda at: at[0] * np.array([1.0, 2.0]) + at[1]
    >>> found = descend(line, np.array([3.0, 5.0]), np.ones(2), np.zeros(2), (np.zeros(2), np.full(2, 9.0)))
    >>> found.point.round(3).tolist()
    [2.0, 1.0]
    """
    low, high = bounds
    point = np.clip(start, low, high)
    found = values(point)
    cost, damping = _cost(weights, target, found), 1e-3
    jacobian = differences(values, point, found, bounds, step)
    for _ in range(rounds):
        pull, curve = _normal(jacobian, weights, target - found)
        free = ~(((point <= low) & (pull < 0)) | ((point >= high) & (pull > 0)))
        moved, gained = False, 0.0
        while free.any() and damping < 1e8:
            trial = np.clip(point + _step(pull, curve, free, damping), low, high)
            tried = values(trial)
            lower = _cost(weights, target, tried)
            if lower < cost:
                gained, moved = (cost - lower) / max(cost, 1e-300), True
                point, found, cost, damping = trial, tried, lower, max(damping / 5.0, 1e-9)
                break
            damping *= 5.0
        if not moved or gained < 1e-7:
            break
        jacobian = differences(values, point, found, bounds, step)
    return Descent(point, found, differences(values, point, found, bounds, step))


def differences(values: Values, point: Floats, at_point: Floats, bounds: tuple[Floats, Floats], step: float) -> Floats:
    """The derivatives of ``values`` at ``point``, from one side, that which lies within the bounds."""
    columns = []
    for place in range(len(point)):
        size = step * max(1.0, abs(float(point[place])))
        if point[place] + size > bounds[1][place]:
            size = -size
        moved = point.copy()
        moved[place] += size
        columns.append((values(moved) - at_point) / size)
    return np.array(columns).T


def _cost(weights: Floats, target: Floats, found: Floats) -> float:
    cost = float(np.square(weights * (target - found)).sum())
    return cost if np.isfinite(cost) else np.inf


def _normal(jacobian: Floats, weights: Floats, residual: Floats) -> tuple[Floats, Floats]:
    weighted = jacobian * weights[:, None]
    return weighted.T @ (weights * residual), weighted.T @ weighted


def _step(pull: Floats, curve: Floats, free: NDArray[np.bool_], damping: float) -> Floats:
    size = np.sqrt(np.maximum(np.diag(curve)[free], 1e-300))
    scaled = curve[np.ix_(free, free)] / np.outer(size, size) + damping * np.eye(int(free.sum()))
    step = np.zeros_like(pull)
    step[free] = np.linalg.lstsq(scaled, pull[free] / size, rcond=None)[0] / size
    return step
