"""The least time of a unit of work, where each step holds so many units and its time grows with what they read.

Steps are of kinds k (sizes). A unit (a token) in a step of kind k takes at least v[k] + s[k] (q - mean), where q is
what the unit reads (its context, its query-key pairs): the line that supports the step's convex time at the mean. Over
a whole run units are shared out among kinds, and the mean of q is known. The least mean time is a linear programme;
every multiplier m of the condition on the mean gives a bound below it (weak duality), the best of many is taken:

    min over k of v[k] + (m - s[k]) (mean - e[k]),   e[k] = least[k] where s[k] >= m, most[k] elsewhere

``most[k]`` may differ by kind: a pool that holds few tokens lets large batches read short contexts only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MULTIPLIERS = 128
WIDER, SMALL = 1.35, 128


def least_per_unit(values: Floats, slopes: Floats, *, mean: float, least: float, most: Floats) -> float:
    """The least mean time of a unit [s]; kinds that no unit can be of (``most`` below ``least``) are left out.

    >>> one, two = np.array([1.0]), np.array([3.0, 2.0])
    >>> least_per_unit(two, two * 0, mean=5.0, least=1.0, most=two * 0 + 9)  # the cheaper kind
    2.0
    >>> least_per_unit(one, one, mean=5.0, least=1.0, most=one * 9)  # one kind: its time at the mean
    1.0
    """
    there = most >= least
    values, slopes, most = values[there], slopes[there], most[there]
    if not len(values):
        return 0.0
    steepest = max(float(slopes.max()), float(values.max()) / max(mean, 1.0))
    multipliers = np.unique(np.concatenate((slopes, np.linspace(0.0, steepest, MULTIPLIERS))))[:, None]
    ends = np.where(slopes >= multipliers, least, most)
    found = values + (multipliers - slopes) * (mean - ends)
    return max(0.0, float(found.min(axis=1).max()))


def sizes(most: int, ratio: float = 1.04) -> list[tuple[int, int]]:
    """Ranges of whole numbers (first, last) from 1 to ``most``: all steps of a range take at least its first's time.

    The last stands alone.

    >>> sizes(4)
    [(1, 1), (2, 2), (3, 3), (4, 4)]
    """
    found, first = [], 1
    while first < most:
        last = min(max(first, int(first * ratio)), most - 1)
        found.append((first, last))
        first = last + 1
    return [*found, (most, most)]


def ranges_from_top(most: int, widest: float = 0.5, narrowest: float = 0.03) -> list[tuple[int, int]]:
    """Ranges (first, last) from ``most`` down to 1, ever wider: large steps are the ones that matter.

    Up to ``widest`` of the range's last, and below ``SMALL`` up to a half: there the weights take most of the time.

    >>> ranges_from_top(5)
    [(5, 5), (4, 4), (3, 3), (2, 2), (1, 1)]
    """
    found, last, share = [(most, most)], most - 1, narrowest
    while last > 0:
        first = max(1, min(last, int(last * (1 - share)) + 1))
        found.append((first, last))
        last = first - 1
        share = min(share * WIDER, widest if last > SMALL else 0.5)
    return found
