"""A trace file into a Trace: recognised, checked row by row, what is left out counted."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.workload import checks
from servewise.workload.traces.lines import opened
from servewise.workload.traces.readers import Row, read
from servewise.workload.traces.trace import Recorded, Trace

MAX_CLOCK_S = 1e13  # beyond any clock, in whatever unit it was mistaken for


def load_trace(
    path: Path | str,
    *,
    sort: bool = False,
    limit: int | None = None,
    block_tokens: int | None = None,
    name: str | None = None,
) -> Trace:
    """The trace in ``path`` (CSV or JSONL, plain or gzipped; the layout is recognised by its names).

    ``sort`` puts rows out of order in order; without it they are refused. ``limit`` reads that many rows.
    ``block_tokens`` are the tokens per block of a generic JSONL with ``block_hashes`` or ``prompt`` (16).
    Raises InputError with file and line for whatever is wrong.
    """
    path = Path(path)
    gathered = _Gathered(where=str(path), sort=sort)
    with opened(path) as lines:
        found = read(lines, str(path), block_tokens)
        rows = found.rows if limit is None else islice(found.rows, checks.tokens(limit, "the limit on rows"))
        gathered.take(rows, found.layout.zero_output)
    hashed = len(gathered.blocks) > 0
    return Trace(
        recorded=gathered.recorded(),
        name=name or path.name.removesuffix(".gz"),
        layout=found.layout.name,
        hash_block_tokens=(block_tokens or found.layout.block_tokens) if hashed else None,
        caveats=gathered.caveats(),
    )


@dataclass(slots=True)
class _Gathered:
    """Columns that grow row by row, compactly."""

    where: str
    sort: bool
    arrival_s: array[float] = field(default_factory=lambda: array("d"))
    prompt_tokens: array[int] = field(default_factory=lambda: array("q"))
    output_tokens: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    blocks: array[int] = field(default_factory=lambda: array("q"))
    left_out: Counter[str] = field(default_factory=Counter)
    moved: int = 0
    from_text: int = 0

    def take(self, rows: Iterator[Row], zero_output: str) -> None:
        """Check and keep every row; those without output are counted under ``zero_output``."""
        last = -MAX_CLOCK_S
        for row in rows:
            if not -MAX_CLOCK_S < row.arrival_s < MAX_CLOCK_S:
                raise InputError(f"an arrival at {row.arrival_s:g} s is no time", where=f"{self.where}:{row.line}")
            if row.arrival_s < last:
                self._out_of_order(row, last)
            last = max(last, row.arrival_s)
            if row.output_tokens == 0:
                self.left_out[zero_output] += 1
            else:
                self._keep(row)

    def _out_of_order(self, row: Row, last: float) -> None:
        if not self.sort:
            what = f"the trace is out of order: this row arrives {last - row.arrival_s:.6g} s before an earlier one"
            raise InputError(what, where=f"{self.where}:{row.line}", hint="ask for it to be sorted, or sort the file")
        self.moved += 1

    def _keep(self, row: Row) -> None:
        self.arrival_s.append(row.arrival_s)
        self.prompt_tokens.append(row.prompt_tokens)
        self.output_tokens.append(row.output_tokens)
        self.blocks.extend(row.blocks)
        self.offsets.append(len(self.blocks))
        self.from_text += row.from_text

    def recorded(self) -> Recorded:
        """The columns in order of arrival (ties as in the file), times from the first, blocks numbered from 0."""
        if not self.arrival_s:
            raise InputError("holds no request", where=self.where)
        arrival = np.frombuffer(self.arrival_s)
        if float(arrival.max() - arrival.min()) > checks.MAX_SECONDS:
            hint = "check the unit of its times"
            raise InputError("its requests span over 30 years", where=self.where, hint=hint)
        names, blocks = np.unique(np.array(self.blocks, np.int64), return_inverse=True)
        offsets = np.array(self.offsets, np.int64)
        order = np.argsort(arrival, kind="stable")
        if self.moved:
            blocks, offsets = _reordered(blocks, offsets, order)
        return Recorded(
            arrival_s=arrival[order] - float(arrival.min()),
            prompt_tokens=np.array(self.prompt_tokens, np.int64)[order],
            output_tokens=np.array(self.output_tokens, np.int64)[order],
            offsets=offsets,
            blocks=blocks.astype(np.int64),
            distinct_blocks=len(names),
        )

    def caveats(self) -> tuple[Caveat, ...]:
        """What was left out, moved or cut by characters."""
        total = len(self.arrival_s) + self.left_out.total()
        found = [
            Caveat(
                "trace-rows-left-out",
                f"{rows:,} of {total:,} rows of {self.where} are {why}: they are left out",
                "compare with a trace of completed requests, or raise the rate to what was sent",
            )
            for why, rows in self.left_out.items()
        ]
        if self.moved:
            message = f"{self.moved:,} rows of {self.where} were out of order and have been sorted"
            found.append(Caveat("trace-sorted", message, "sort the file where it is made"))
        if self.from_text:
            message = f"{self.from_text:,} prompts of {self.where} are text: blocks are cut at 4 characters a token"
            found.append(Caveat("trace-text-blocks", message, "give token ids as prompt, or block_hashes"))
        return tuple(found)


def _reordered(
    blocks: np.typing.NDArray[np.int64], offsets: np.typing.NDArray[np.int64], order: np.typing.NDArray[np.int64]
) -> tuple[np.typing.NDArray[np.int64], np.typing.NDArray[np.int64]]:
    """The ragged rows of ``blocks`` in another ``order``."""
    sizes = np.diff(offsets)[order]
    ends = np.concatenate(([0], np.cumsum(sizes)))
    source = np.repeat(offsets[:-1][order] - ends[:-1], sizes) + np.arange(len(blocks))
    return blocks[source], ends
