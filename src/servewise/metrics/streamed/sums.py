"""Sums over columns on disk, added in the order in which NumPy adds an array, so that they are equal to the last bit.

NumPy adds pairwise (numpy/_core/src/umath/loops_utils.h.src, ``pairwise_sum``, since 1.9): above 128 values the sum is
that of its two halves, the first a multiple of 8 long; ``reduceat`` begins with a block's first value and adds the
pairwise sum of the others. The tests hold both equal: a NumPy that adds otherwise shows there, as a difference in the
last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from servewise.scratch import PIECE, Column

Floats = NDArray[np.float64]
Rows = Callable[[int, int], Sequence[Floats]]  # from, to -> several rows of that part
LEAST_PIECE = 128  # NumPy's own smallest half


def total(column: Column, *, piece: int = PIECE) -> float:
    """``np.sum`` of the column."""
    return float(totals(lambda start, stop: [column.read(start, stop)], 0, len(column), piece=piece)[0])


def totals(rows: Rows, start: int, stop: int, *, piece: int = PIECE) -> Floats:
    """``np.sum`` of each of ``rows``, from ``start`` to ``stop``, no more than ``piece`` values of each in memory."""
    count = stop - start
    if count <= max(piece, LEAST_PIECE):
        return np.array([np.add.reduce(each) for each in rows(start, stop)])
    half = count // 2
    middle = start + half - half % 8
    return totals(rows, start, middle, piece=piece) + totals(rows, middle, stop, piece=piece)


def block_totals(rows: Rows, starts: NDArray[np.int64], count: int, *, piece: int = PIECE) -> Floats:
    """``np.add.reduceat`` of each of ``rows`` at ``starts``: a line for each row, a sum for each block."""
    ends = np.append(starts[1:], count).tolist()
    blocks = [_block(rows, start, end, piece) for start, end in zip(starts.tolist(), ends, strict=True)]
    return np.stack(blocks, axis=1)


def _block(rows: Rows, start: int, end: int, piece: int) -> Floats:
    first = np.array([each[0] for each in rows(start, start + 1)])
    return first + totals(rows, start + 1, end, piece=piece) if end - start > 1 else first
