"""Percentiles, weighted means and rates of samples on disk: what ``metrics.sample`` gives of arrays, bit by bit.

A sample is read some six to ten times from its column, a piece at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from servewise.metrics.percentiles import Interval, Percentiles
from servewise.metrics.sample import (
    EMPTY,
    FEWEST_BLOCKS,
    FEWEST_VALUES,
    SHARES,
    Estimate,
    blocks,
    deviation,
    independent,
    number_of_blocks,
)
from servewise.metrics.streamed.ranks import Ranks
from servewise.metrics.streamed.sums import block_totals, totals
from servewise.metrics.student import t_quantile
from servewise.scratch import PIECE, Column

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Read = Callable[[int, int], Floats]


def percentiles(values: Column, weights: Column | None = None, *, piece: int = PIECE) -> Percentiles:
    """``sample.percentiles`` of a sample on disk, in order of time; all ``weights`` are above 0."""
    count = len(values)
    if not count:
        return EMPTY
    ranks = Ranks(values, weights, piece=piece)
    found = _quantiles(ranks)
    mean = _mean(values, weights, ranks.total, piece)
    ci95 = {} if count < FEWEST_VALUES else _intervals(values, weights, ranks, found, mean, piece)
    return Percentiles(mean=mean, n=round(ranks.total), ci95=ci95, **found)


def weighted_mean(values: Read, weights: Column, *, piece: int = PIECE) -> Estimate:
    """``sample.weighted_mean``: ``values`` are read, or made, by part."""
    count = len(weights)
    total = float(sum(float(each.sum()) for each in weights.pieces(rows=piece)))
    if total <= 0:
        return math.nan, None
    parts = totals(lambda start, stop: [values(start, stop) * weights.read(start, stop)], 0, count, piece=piece)
    mean = float(parts[0]) / total
    if count < FEWEST_VALUES:
        return mean, None
    starts, sizes = weighted_blocks(weights, total, piece=piece)
    if len(starts) < FEWEST_BLOCKS:
        return mean, None
    sums = block_totals(
        lambda start, stop: [(values(start, stop) - mean) * weights.read(start, stop)], starts, count, piece=piece
    )
    reach = t_quantile(0.975, len(starts) - 1) * deviation(sums[0], sizes)
    least = min(float(values(at, min(at + piece, count)).min()) for at in range(0, count, piece))
    return mean, (max(mean - reach, 0.0) if least >= 0 else mean - reach, mean + reach)


def weighted_blocks(weights: Column, total: float, *, piece: int = PIECE) -> tuple[Ints, Floats]:
    """``sample.blocks`` of a weighted sample: where each block begins, and its weight."""
    number = number_of_blocks(len(weights))
    marks = total * np.arange(number) / number
    starts, before, at = np.zeros(number, np.int64), 0.0, 0
    passed = np.zeros(number)  # the weight before each start
    for each in weights.pieces(rows=piece):
        mass = before + np.cumsum(each)
        here = (marks >= before) & (marks < mass[-1])
        within = np.searchsorted(mass, marks[here], side="right")
        starts[here], passed[here] = at + within, mass[within] - each[within]
        before, at = float(mass[-1]), at + len(each)
    starts, first = np.unique(starts, return_index=True)
    return starts, np.diff(np.append(passed[first], total))


def _quantiles(ranks: Ranks) -> dict[str, float]:
    """``sample.quantile`` at every share."""
    positions = [max(ranks.total - 1, 0) * share for share in SHARES.values()]
    lows = [math.floor(position) for position in positions]
    order = ranks.at([index for low in lows for index in (low, low + 1)])
    return {
        name: below + (position - low) * (above - below)
        for name, position, low, below, above in zip(SHARES, positions, lows, order[::2], order[1::2], strict=True)
    }


def _mean(values: Column, weights: Column | None, total: float, piece: int) -> float:
    def rows(start: int, stop: int) -> list[Floats]:
        part = values.read(start, stop)
        return [part if weights is None else part * weights.read(start, stop)]

    return float(totals(rows, 0, len(values), piece=piece)[0] / total)


def _intervals(
    values: Column, weights: Column | None, ranks: Ranks, found: dict[str, float], mean: float, piece: int
) -> dict[str, Interval]:
    def residuals(start: int, stop: int) -> list[Floats]:
        part = values.read(start, stop)
        rows = [part - mean, *((part <= found[name]).astype(float) - share for name, share in SHARES.items())]
        if weights is None:
            return rows
        weighing = weights.read(start, stop)
        return [row * weighing for row in rows]

    if weights is None:
        starts, sizes = blocks(len(values), None)
        effective = float(len(values))
    else:
        starts, sizes = weighted_blocks(weights, ranks.total, piece=piece)
        squares = totals(lambda start, stop: [np.square(weights.read(start, stop))], 0, len(weights), piece=piece)
        effective = ranks.total**2 / float(squares[0])
    if len(starts) < FEWEST_BLOCKS:
        return {}
    sums = block_totals(residuals, starts, len(values), piece=piece)
    reach = t_quantile(0.975, len(starts) - 1)
    spread = reach * deviation(sums[0], sizes)
    reaches = [
        reach * max(deviation(row, sizes), independent(share, effective))
        for row, share in zip(sums[1:], SHARES.values(), strict=True)
    ]
    return {"mean": (mean - spread, mean + spread)} | _woodruff(ranks, found, reaches)


def _woodruff(ranks: Ranks, found: dict[str, float], reaches: Sequence[float]) -> dict[str, Interval]:
    """``sample._woodruff`` at every share."""
    total, shares = ranks.total, list(SHARES.values())
    lows = [max(math.floor((share - reach) * total), 0) for share, reach in zip(shares, reaches, strict=True)]
    highs = [math.ceil((share + reach) * total) for share, reach in zip(shares, reaches, strict=True)]
    order = ranks.at([*lows, *highs, 0, total])
    least, most = order[-2:]
    ends: dict[str, Interval] = {}
    for at, (name, share) in enumerate(SHARES.items()):
        open_above = share + reaches[at] >= 1 and least < most
        high = math.inf if open_above else max(order[len(shares) + at], found[name])
        ends[name] = min(order[at], found[name]), high
    return ends
