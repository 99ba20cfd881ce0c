"""A rate of what ended, from columns on disk."""

from __future__ import annotations

import math

import numpy as np

from servewise.metrics.sample import FEWEST_VALUES, MOST_BLOCKS, Estimate
from servewise.metrics.student import t_quantile
from servewise.scratch import PIECE, Column


def rate(ends: Column, first_s: float, counts: Column | None, *, duration_s: float, piece: int = PIECE) -> Estimate:
    """``sample.rate`` of whole ``counts`` (None: one each) at ``ends``, seconds from ``first_s`` on.

    Sums of whole numbers are exact in any order.
    """
    if duration_s <= 0:
        return 0.0, None
    summed, slices = 0.0, np.zeros(MOST_BLOCKS)
    for at in range(0, len(ends), piece):
        stop = min(at + piece, len(ends))
        each = np.ones(stop - at) if counts is None else counts.read(at, stop).astype(np.float64)
        summed += float(each.sum())
        slices += np.histogram(ends.read(at, stop) - first_s, MOST_BLOCKS, (0.0, duration_s), weights=each)[0]
    mean = summed / duration_s
    if len(ends) < FEWEST_VALUES:
        return mean, None
    slices /= duration_s / MOST_BLOCKS
    reach = t_quantile(0.975, MOST_BLOCKS - 1) * float(slices.std(ddof=1)) / math.sqrt(MOST_BLOCKS)
    return mean, (max(mean - reach, 0.0), mean + reach)
