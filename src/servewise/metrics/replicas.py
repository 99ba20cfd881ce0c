"""Replicas (seeds, coefficient draws) put together: the mean, with Student's t interval from their spread."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servewise.metrics.percentiles import Interval, Percentiles
from servewise.metrics.sample import EMPTY, NAMES
from servewise.metrics.student import t_quantile


def mean(values: Sequence[float]) -> float:
    """The mean of the values that are numbers; NaN where none is."""
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def interval(values: Sequence[float]) -> Interval | None:
    """The 95% interval of the mean, mean -/+ t x s / sqrt(n); None for fewer than two values."""
    known = [value for value in values if not math.isnan(value)]
    if len(known) < 2:
        return None
    middle = mean(known)
    deviation = math.sqrt(math.fsum((value - middle) ** 2 for value in known) / (len(known) - 1))
    reach = t_quantile(0.975, len(known) - 1) * deviation / math.sqrt(len(known))
    return middle - reach, middle + reach


def interval_from_zero(values: Sequence[float]) -> Interval | None:
    """``interval`` of what cannot be below zero (latencies, rates, shares): it does not reach below zero either.

    >>> interval_from_zero([1.0, 3.0])[0]
    0.0
    """
    found = interval(values)
    return found and (max(found[0], 0.0), found[1])


def pool_percentiles(replicas: Sequence[Percentiles]) -> Percentiles:
    """The mean of each percentile over replicas; one replica keeps its own intervals, empty ones say nothing."""
    known = [each for each in replicas if each.n > 0]
    if len(known) < 2:
        return known[0] if known else EMPTY
    values = {name: [float(getattr(each, name)) for each in known] for name in NAMES}
    found = {name: pair for name in NAMES if (pair := interval_from_zero(values[name])) is not None}
    return Percentiles(**{name: mean(values[name]) for name in NAMES}, n=sum(each.n for each in known), ci95=found)
