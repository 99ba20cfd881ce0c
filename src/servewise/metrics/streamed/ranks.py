"""Order statistics of a column on disk, exact, in passes over it: which value has so much of the sample below it.

The bits of doubles, read as whole numbers, are in the order of the values. Each pass counts, for every order statistic
that is sought, its next 16 bits (a radix selection): four passes whatever the sample, 65,536 counters for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from servewise.scratch import PIECE, Column

Keys = NDArray[np.uint64]
BITS, SIGN = 16, np.uint64(1 << 63)
SHIFTS = (48, 32, 16, 0)


class Ranks:
    """The sample of ``values``, each of which stands as often as ``weights`` says (None: once), in ascending order.

    Weights are multiples of 2^-16 and sum up to less than 2^36, so that their sums are exact in any order.
    """

    def __init__(self, values: Column, weights: Column | None = None, *, piece: int = PIECE) -> None:
        self._values, self._weights, self._piece = values, weights, piece
        self._first = self._counts((0,), 64 - BITS)[0]
        self.total = float(self._first.sum())

    def at(self, indices: Sequence[float]) -> list[float]:
        """The order statistics of ``indices``, counted from 0; beyond the last: the last."""
        found = [(0, 0.0) for _ in indices]  # the leading bits, and how much of the sample is below them
        for shift in SHIFTS:
            leading = tuple(sorted({prefix for prefix, _ in found}))
            counts = [self._first] if shift == SHIFTS[0] else self._counts(leading, shift)
            by = dict(zip(leading, counts, strict=True))
            found = [
                _narrowed(by[prefix], prefix, below, at) for (prefix, below), at in zip(found, indices, strict=True)
            ]
        return [float(each) for each in _values(np.array([prefix for prefix, _ in found], np.uint64))]

    def _counts(self, leading: Sequence[int], shift: int) -> list[NDArray[np.float64]]:
        """Of the values that begin with the bits ``leading``, how often each next 16 bits come."""
        found = [np.zeros(1 << BITS) for _ in leading]
        for keys, weights in self._pieces():
            before, bits = keys >> np.uint64(shift + BITS) if shift < SHIFTS[0] else None, keys >> np.uint64(shift)
            bits &= np.uint64((1 << BITS) - 1)
            for at, prefix in enumerate(leading):
                here = slice(None) if before is None else before == np.uint64(prefix)
                weighing = None if weights is None else weights[here]
                found[at] += np.bincount(bits[here].astype(np.int64), weighing, 1 << BITS)
        return found

    def _pieces(self) -> Iterator[tuple[Keys, NDArray[np.float64] | None]]:
        weights = repeat(None) if self._weights is None else self._weights.pieces(rows=self._piece)
        for values, weighing in zip(self._values.pieces(rows=self._piece), weights, strict=False):
            yield _keys(values), weighing


def _narrowed(counts: NDArray[np.float64], prefix: int, below: float, index: float) -> tuple[int, float]:
    """Where the sum of ``counts``, from ``below`` on, first exceeds ``index``: its bits, and the sum before it."""
    mass = below + np.cumsum(counts)
    place = int(np.searchsorted(mass, index, side="right"))
    if place == len(mass):  # beyond the last: the highest that is there
        place = int(np.flatnonzero(counts)[-1])
    return prefix << BITS | place, float(mass[place] - counts[place])


def _keys(values: NDArray[np.float64]) -> Keys:
    """Whole numbers in the order of ``values``; -0.0 is 0.0."""
    bits = (values + 0.0).view(np.uint64)
    keys: Keys = np.where(bits & SIGN, ~bits, bits | SIGN)
    return keys


def _values(keys: Keys) -> NDArray[np.float64]:
    bits: Keys = np.where(keys & SIGN, keys & ~SIGN, ~keys)
    return bits.view(np.float64)
