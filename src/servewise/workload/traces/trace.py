"""A recorded trace as a workload: the requests as they came, at the recorded rate or any other, once or repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count as counting
from itertools import pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.scratch import Column
from servewise.workload import checks
from servewise.workload.lengths import Empirical
from servewise.workload.request import Request

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CHUNK = 16_384  # rows turned into Python objects at a time
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The columns of a trace in order of arrival; ``arrival_s`` counts from the first request.

    Row i shares the blocks ``blocks[offsets[i] : offsets[i + 1]]``, numbered from 0 to ``distinct_blocks`` - 1; None:
    they have the names of the file. A long trace's columns are on disk (``Column``).
    """

    arrival_s: Floats | Column
    prompt_tokens: Ints | Column
    output_tokens: Ints | Column
    offsets: Ints | Column
    blocks: Ints | Column
    distinct_blocks: int | None

    def __len__(self) -> int:
        """Requests."""
        return len(self.arrival_s)

    def digests(self) -> tuple[str, ...]:
        """Checksums of columns that are on disk."""
        columns = (self.arrival_s, self.prompt_tokens, self.output_tokens, self.offsets, self.blocks)
        return tuple(each.digest() for each in columns if isinstance(each, Column))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """``recorded`` requests, ``count`` of them (repeated where that is more than there are).

    ``scale`` multiplies every arrival time. ``fresh_blocks``: each repetition has blocks of its own, as other users
    would; otherwise it sends the same prompts again. ``caveats`` say what was left out or is inexact.
    """

    recorded: Recorded
    name: str
    layout: str = "generic"
    hash_block_tokens: int | None = None
    caveats: tuple[Caveat, ...] = ()
    scale: float = 1.0
    count: int | None = None
    fresh_blocks: bool = True

    def __len__(self) -> int:
        """Requests that it yields."""
        return len(self.recorded) if self.count is None else self.count

    @property
    def title(self) -> str:
        """E.g. ``azure-conv, 19,366 requests, 5.53/s``."""
        tiles = " repeated" if len(self) > len(self.recorded) else ""
        scaled = "" if self.scale == 1 else f" (recorded {self.rate_per_s * self.scale:.3g}/s)"
        return f"{self.name}, {len(self):,} requests{tiles}, {self.rate_per_s:.3g}/s{scaled}"

    @property
    def rate_per_s(self) -> float:
        """Mean arrival rate [requests/s]: gaps over the time that they take; infinite where all arrive at once."""
        rows = min(len(self), len(self.recorded))
        span = float(self.recorded.arrival_s[rows - 1]) * self.scale
        return (rows - 1) / span if span > 0 else math.inf

    @property
    def mean_prompt_tokens(self) -> float:
        """Mean prompt [tokens]."""
        return _mean(self.recorded.prompt_tokens, len(self))

    @property
    def mean_output_tokens(self) -> float:
        """Mean output [tokens]."""
        return _mean(self.recorded.output_tokens, len(self))

    def prompt_lengths(self) -> Empirical:
        """The recorded prompt lengths as a distribution."""
        return Empirical(self.recorded.prompt_tokens[:].tolist(), self.name)

    def output_lengths(self) -> Empirical:
        """The recorded output lengths as a distribution."""
        return Empirical(self.recorded.output_tokens[:].tolist(), self.name)

    def at_rate(self, rate_per_s: float) -> Trace:
        """The same requests, their times scaled to that mean rate (the pattern of bursts stays)."""
        wanted = checks.rate(rate_per_s, where=self.name)
        if math.isinf(self.rate_per_s):
            raise InputError("all requests arrive at one moment, so there is no rate to scale", where=self.name)
        return replace(self, scale=self.scale * (self.rate_per_s / wanted))

    def tiled(self, count: int, *, fresh_blocks: bool = True) -> Trace:
        """The first ``count`` requests, the trace repeated one mean gap after its end as often as that takes."""
        return replace(self, count=checks.tokens(count, "the number of requests"), fresh_blocks=fresh_blocks)

    def requests(self, seed: int) -> Iterator[Request]:  # noqa: ARG002 (a trace is the same under every seed)
        """The requests in order of arrival."""
        rows, left = len(self.recorded), len(self)
        period = float(self.recorded.arrival_s[-1]) * rows / max(rows - 1, 1)
        for tile in counting():
            for first in range(0, min(left, rows), CHUNK):
                yield from self._part(tile, period * tile, slice(first, min(first + CHUNK, left, rows)))
            left -= rows
            if left <= 0:
                return

    def _part(self, tile: int, start_s: float, rows: slice) -> Iterator[Request]:
        """The requests of ``rows`` in repetition ``tile``, which begins at ``start_s`` of the trace's own time."""
        whole = self.recorded
        times = ((whole.arrival_s[rows] + start_s) * self.scale).tolist()
        lengths = whole.prompt_tokens[rows].tolist(), whole.output_tokens[rows].tolist()
        blocks = self._blocks(tile, rows) if self.hash_block_tokens else repeat(())
        return map(Request, counting(tile * len(whole) + rows.start), times, *lengths, blocks)

    def _blocks(self, tile: int, rows: slice) -> Iterator[tuple[int, ...]]:
        offsets = self.recorded.offsets[rows.start : rows.stop + 1].tolist()
        first = offsets[0]
        blocks = self.recorded.blocks[first : offsets[-1]]
        if tile and self.fresh_blocks:
            blocks = _renamed(blocks, tile, self.recorded.distinct_blocks)
        names = blocks.tolist()
        return (tuple(names[start - first : end - first]) for start, end in pairwise(offsets))


def _mean(column: Ints | Column, count: int) -> float:
    """The mean of its first ``count`` whole numbers."""
    rows = min(count, len(column))
    return sum(int(column[at : min(at + CHUNK, rows)].sum()) for at in range(0, rows, CHUNK)) / rows


def _renamed(blocks: Ints, tile: int, distinct: int | None) -> Ints:
    """Names of blocks that repetition ``tile`` has alone.

    Where they are not numbered, 63 bits mixed of name and repetition (Steele et al. 2014, SplitMix64's finaliser): of
    10^8 blocks the odds that any two names meet are one in a thousand.
    """
    if distinct is not None:
        return blocks + tile * distinct
    mixed = blocks.astype(np.uint64) + np.uint64(tile * GOLDEN % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Ints = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)
    return found
