"""The least-squares descent against problems whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from servewise.calibrate.descent import Floats, descend

HIGH = np.full(3, 10.0)


def test_linear_problem_is_solved() -> None:
    """Weighted linear least squares agrees with the normal equations."""
    rng = np.random.default_rng(1)
    matrix, weights = rng.random((30, 3)), rng.random(30) + 0.5
    target = matrix @ np.array([1.0, 2.0, 0.5]) + rng.normal(0, 0.1, 30)
    exact = np.linalg.lstsq(matrix * weights[:, None], target * weights, rcond=None)[0]
    found = descend(lambda at: matrix @ at, target, weights, np.ones(3), (np.zeros(3), HIGH))

    assert found.point == pytest.approx(exact, rel=1e-5)
    assert found.jacobian == pytest.approx(matrix, rel=1e-5)


def test_bounds_hold() -> None:
    """Where the best point lies outside, the answer is that of SciPy's bounded solver."""
    rng = np.random.default_rng(2)
    matrix = rng.random((30, 3))
    target = matrix @ np.array([-1.0, 2.0, 12.0])
    bounds = (np.zeros(3), HIGH)
    theirs = least_squares(lambda at: matrix @ at - target, np.ones(3), bounds=bounds).x

    assert descend(lambda at: matrix @ at, target, np.ones(30), np.ones(3), bounds).point == pytest.approx(
        theirs, abs=1e-3
    )


def test_curved_problem() -> None:
    """Rosenbrock's valley, as a sum of squares, is followed to its end at (1, 1)."""

    def valley(at: Floats) -> Floats:
        return np.array([10.0 * (at[1] - at[0] ** 2), at[0]])

    bounds = (np.full(2, -5.0), np.full(2, 5.0))
    found = descend(valley, np.array([0.0, 1.0]), np.ones(2), np.array([-1.2, 1.0]), bounds, rounds=200)

    assert found.point == pytest.approx([1.0, 1.0], abs=1e-3)
