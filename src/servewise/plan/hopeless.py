"""Runs that can no longer keep the SLO are ended early: what is late stays late."""

from __future__ import annotations

from math import floor

import numpy as np
from numpy.typing import NDArray

from servewise.metrics.slo import Bound, Slo
from servewise.records.columns import RequestColumns

SHARES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
Floats = NDArray[np.float64]


class Hopeless:
    """Whether a run of ``total`` requests can no longer keep ``slo``, whatever the rest of it brings.

    A percentile above its limit takes a number of requests above it; a mean, a sum. ITL is not followed: it has no
    value a request. Never says so of a run that would have kept the SLO.
    """

    def __init__(self, slo: Slo, total: int) -> None:
        self._total = total
        self._counted = [each for each in slo.bounds if each.metric in ("ttft", "tpot", "e2e")]
        self._against = [0.0] * len(self._counted)
        self._seen = 0

    def __call__(self, columns: RequestColumns) -> bool:
        """Look at the requests that ended since the last call."""
        rows = slice(self._seen, len(columns))
        self._seen = len(columns)
        for index, bound in enumerate(self._counted):
            self._against[index] += _against(bound, _values(bound.metric, columns, rows))
        return any(count > self._allowed(bound) for bound, count in zip(self._counted, self._against, strict=True))

    def _allowed(self, bound: Bound) -> float:
        if bound.percentile == "mean":
            return bound.limit_s * self._total
        at_or_below = floor(SHARES[bound.percentile] * (self._total - 1))
        return self._total - at_or_below - 1


def _against(bound: Bound, values: Floats) -> float:
    if bound.percentile == "mean":
        return float(np.nansum(values))
    return float(np.count_nonzero(values > bound.limit_s))


def _values(metric: str, columns: RequestColumns, rows: slice) -> Floats:
    first: Floats = np.asarray(columns.first_token_s[rows], float)
    scheduled: Floats = np.asarray(columns.scheduled_s[rows], float)
    end: Floats = np.asarray(columns.end_s[rows], float)
    if metric == "tpot":
        after_first = np.asarray(columns.output_tokens[rows], float) - 1
        return np.where(after_first > 0, (end - first) / np.maximum(after_first, 1), np.nan)
    found: Floats = (first if metric == "ttft" else end) - scheduled
    return found
