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
from servewise.scratch import Scratch
from servewise.workload import checks
from servewise.workload.traces.lines import opened
from servewise.workload.traces.parquet import Batch, is_parquet, read_parquet
from servewise.workload.traces.readers import Row, read
from servewise.workload.traces.trace import Recorded, Trace

MAX_CLOCK_S = 1e13  # beyond any clock, in whatever unit it was mistaken for
HELD_ROWS = 500_000  # what is longer is kept on disk
KINDS = {"arrival_s": "d", "prompt_tokens": "q", "output_tokens": "q", "offsets": "q", "blocks": "q"}


def load_trace(
    path: Path | str,
    *,
    sort: bool = False,
    limit: int | None = None,
    block_tokens: int | None = None,
    name: str | None = None,
) -> Trace:
    """The trace in ``path`` (CSV or JSONL, plain or gzipped, or Parquet; the layout is recognised by its names).

    ``sort`` puts rows out of order in order; without it they are refused. ``limit`` reads that many rows.
    ``block_tokens`` are the tokens per block of a generic trace with ``block_hashes`` or ``prompt`` (16).
    A trace of over 500,000 rows is kept on disk while it is used, unless it is to be sorted.
    Raises InputError with file and line (of Parquet: row) for whatever is wrong.
    """
    path = Path(path)
    gathered = _Gathered(where=str(path), sort=sort)
    most = None if limit is None else checks.tokens(limit, "the limit on rows")
    if is_parquet(path):
        table = read_parquet(path, block_tokens)
        layout = table.layout
        for batch in table.batches:
            gathered.take_batch(batch if most is None else batch.first(most - gathered.came), layout.zero_output)
            if gathered.came == most:
                break
    else:
        with opened(path) as lines:
            found = read(lines, str(path), block_tokens)
            layout = found.layout
            gathered.take(found.rows if most is None else islice(found.rows, most), layout.zero_output)
    hashed = gathered.block_count > 0
    return Trace(
        recorded=gathered.recorded(),
        name=name or path.name.removesuffix(".gz"),
        layout=layout.name,
        hash_block_tokens=(block_tokens or layout.block_tokens) if hashed else None,
        caveats=gathered.caveats(),
    )


@dataclass(slots=True)
class _Gathered:
    """Columns that grow row by row, compactly; from ``HELD_ROWS`` rows on, on disk."""

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
    came: int = 0
    block_count: int = 0
    last_s: float = -MAX_CLOCK_S
    first_s: float | None = None
    on_disk: Recorded | None = None

    def take(self, rows: Iterator[Row], zero_output: str) -> None:
        """Check and keep every row; those without output are counted under ``zero_output``."""
        for row in rows:
            if not -MAX_CLOCK_S < row.arrival_s < MAX_CLOCK_S:
                raise InputError(f"an arrival at {row.arrival_s:g} s is no time", where=f"{self.where}:{row.line}")
            if row.arrival_s < self.last_s:
                self._out_of_order(row.arrival_s, self.last_s, row.line)
            self.last_s = max(self.last_s, row.arrival_s)
            self.came += 1
            if row.output_tokens == 0:
                self.left_out[zero_output] += 1
            else:
                self._keep(row)

    def take_batch(self, batch: Batch, zero_output: str) -> None:
        """The same of many rows at once."""
        arrival = batch.arrival_s
        if not len(arrival):
            return
        wrong = np.flatnonzero(~(np.abs(arrival) < MAX_CLOCK_S))
        if len(wrong):
            what = f"an arrival at {arrival[wrong[0]]:g} s is no time"
            raise InputError(what, where=f"{self.where}:{batch.row + int(wrong[0])}")
        latest = np.maximum.accumulate(np.concatenate(([self.last_s], arrival)))
        for row in np.flatnonzero(arrival < latest[:-1]).tolist():
            self._out_of_order(float(arrival[row]), float(latest[row]), batch.row + row)
        self.last_s = float(latest[-1])
        self.came += len(arrival)
        served = batch.output_tokens > 0
        if not served.all():
            self.left_out[zero_output] += int((~served).sum())
            batch = batch.picked(served)
        self._keep_batch(batch)

    def _out_of_order(self, arrival_s: float, last_s: float, line: int) -> None:
        if not self.sort:
            what = f"the trace is out of order: this row arrives {last_s - arrival_s:.6g} s before an earlier one"
            raise InputError(what, where=f"{self.where}:{line}", hint="ask for it to be sorted, or sort the file")
        self.moved += 1

    def _keep(self, row: Row) -> None:
        self.arrival_s.append(row.arrival_s)
        self.prompt_tokens.append(row.prompt_tokens)
        self.output_tokens.append(row.output_tokens)
        if row.blocks:
            self.blocks.extend(row.blocks)
            self.block_count += len(row.blocks)
        self.offsets.append(self.block_count)
        self.from_text += row.from_text
        self._leave_if_many()

    def _keep_batch(self, batch: Batch) -> None:
        self.arrival_s.frombytes(batch.arrival_s.tobytes())
        self.prompt_tokens.frombytes(batch.prompt_tokens.tobytes())
        self.output_tokens.frombytes(batch.output_tokens.tobytes())
        self.blocks.frombytes(batch.blocks.tobytes())
        self.offsets.frombytes((self.block_count + batch.block_ends).tobytes())
        self.block_count += len(batch.blocks)
        self._leave_if_many()

    def _leave_if_many(self) -> None:
        if len(self.arrival_s) >= HELD_ROWS and not self.sort:
            self._leave()

    def _leave(self) -> None:
        """What is held goes to disk, times from the first one's."""
        if self.on_disk is None:
            scratch, self.first_s = Scratch(), self.arrival_s[0]
            columns = {name: scratch.column(kind) for name, kind in KINDS.items()}
            self.on_disk = Recorded(**columns, distinct_blocks=None)
        for name, kind in KINDS.items():
            column, held = getattr(self.on_disk, name), np.array(getattr(self, name))
            column.append(held - self.first_s if name == "arrival_s" else held)
            setattr(self, name, array(kind))

    def recorded(self) -> Recorded:
        """The columns in order of arrival (ties as in the file), times from the first, blocks numbered from 0."""
        if self.on_disk is not None:
            self._leave()
            self._check_span(float(self.on_disk.arrival_s[-1]))
            return self.on_disk
        if not self.arrival_s:
            raise InputError("holds no request", where=self.where)
        arrival = np.frombuffer(self.arrival_s)
        self._check_span(float(arrival.max() - arrival.min()))
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

    def _check_span(self, seconds: float) -> None:
        if seconds > checks.MAX_SECONDS:
            hint = "check the unit of its times"
            raise InputError("its requests span over 30 years", where=self.where, hint=hint)

    def caveats(self) -> tuple[Caveat, ...]:
        """What was left out, moved or cut by characters."""
        total = self.came
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
