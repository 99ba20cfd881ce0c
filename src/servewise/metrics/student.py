"""Quantiles of Student's t, so that intervals of few replicas are as wide as they must be."""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist


@cache
def t_quantile(probability: float, degrees: int) -> float:
    """The ``probability`` quantile of Student's t with ``degrees`` degrees of freedom.

    Exact for 1 and 2 degrees; above, Newton's method on the distribution function, begun at the normal quantile.

    >>> round(t_quantile(0.975, 1), 4), round(t_quantile(0.975, 9), 4)
    (12.7062, 2.2622)
    """
    if degrees < 1 or not 0 < probability < 1:
        raise ValueError(f"no t quantile at {probability} with {degrees} degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:
        centred = 2 * probability - 1
        return centred * math.sqrt(2 / (1 - centred * centred))
    return _newton(probability, degrees)


def _newton(probability: float, degrees: int) -> float:
    """The distribution is concave right of 0, so Newton's steps from the left climb to the root and never pass it."""
    t = NormalDist().inv_cdf(probability)
    for _ in range(100):
        step = (probability - _distribution(t, degrees)) / _density(t, degrees)
        t += step
        if abs(step) <= 1e-13 * max(1.0, t):
            break
    return t


def _density(t: float, degrees: int) -> float:
    log = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    return math.exp(log - (degrees + 1) / 2 * math.log1p(t * t / degrees))


def _distribution(t: float, degrees: int) -> float:
    """P(T <= t) by the finite sums of Abramowitz and Stegun 26.7.3 (odd degrees) and 26.7.4 (even)."""
    angle = math.atan2(t, math.sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2
    term = total = 1.0
    for j in range(2 + odd, degrees - 1, 2):
        term *= cosine_squared * (j - 1) / j
        total += term
    if odd:
        return 0.5 + (angle + math.sin(angle) * math.cos(angle) * total) / math.pi
    return 0.5 + math.sin(angle) * total / 2
