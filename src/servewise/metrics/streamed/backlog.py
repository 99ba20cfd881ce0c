"""Whether a run on disk is in balance: ``saturation.trend``, from when its requests came and left the backlog."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from servewise.metrics.saturation import FEWEST, LATE_NEEDED, LATE_PARTS, Balance, balance, instants_of, too_few
from servewise.scratch import PIECE, Column

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def trend(arrived: Column, left: Column, *, piece: int = PIECE) -> Balance:
    """``arrived`` in ascending order, ``left`` (infinite: never) of the same requests, none before it arrived [s]."""
    if len(arrived) < FEWEST or arrived[-1] <= arrived[0]:
        return too_few(len(arrived))
    span = float(arrived[-1] - arrived[0])
    instants = instants_of(float(arrived[0]), span)
    backlog = _by_then(arrived, instants, piece) - _by_then(left, instants, piece)
    return balance(len(arrived), span, backlog, empties=_empties(arrived, left, piece))


def _by_then(times: Column, instants: Floats, piece: int) -> Ints:
    """How many of ``times`` are at or before each of ``instants``."""
    found = np.zeros(len(instants), np.int64)
    for each in times.pieces(rows=piece):
        found += np.searchsorted(np.sort(each), instants, side="right")
    return found


def _empties(arrived: Column, left: Column, piece: int) -> bool:
    """``saturation._empties``: each part of the second half of the arrivals, and whether any of it found nobody."""
    count = len(arrived)
    sizes = [len(part) for part in np.array_split(np.empty(count - count // 2, bool), LATE_PARTS)]
    edges = count // 2 + np.concatenate(([0], np.cumsum(sizes)))
    found = np.zeros(LATE_PARTS, bool)
    for start, nobody in _found_nobody(arrived, left, piece):
        part = np.searchsorted(edges, start + np.flatnonzero(nobody), side="right") - 1
        found[part[part >= 0]] = True
    return int(found.sum()) >= LATE_NEEDED


def _found_nobody(arrived: Column, left: Column, piece: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """From which place on, and of each arrival whether all that came before it had left by then."""
    start, gone, still = 0, 0, np.empty(0)
    while start < len(arrived):
        stop = _before_another(arrived, min(start + piece, len(arrived)))
        came = arrived.read(start, stop)
        still = np.sort(np.concatenate((still, left.read(start, stop))))
        yield start, gone + np.searchsorted(still, came, side="right") >= np.arange(start, stop)
        passed = int(np.searchsorted(still, came[-1], side="right"))
        gone, still, start = gone + passed, still[passed:], stop


def _before_another(arrived: Column, stop: int) -> int:
    """``stop``, or further on where arrivals at one moment would be torn apart."""
    while 0 < stop < len(arrived) and arrived[stop] == arrived[stop - 1]:
        stop += 1
    return stop
