"""Traces in Parquet: the layouts of the other traces by the names of the columns, many rows at a time.

Arrivals are numbers in the layout's unit, dates and times, or their text; blocks are lists of whole numbers.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import arro3.core as arrow
import arro3.io
import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.workload import checks
from servewise.workload.traces.layouts import CSV_LAYOUTS, EPOCH, JSONL_LAYOUTS, Layout, recognised
from servewise.workload.traces.readers import ONE_NAME

MAGIC = b"PAR1"
ROWS = 65_536
READ_ALL = f"import sys, arro3.io\nfor _ in arro3.io.read_parquet(sys.argv[1], batch_size={ROWS}): pass"
UNITS_PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows from number ``row`` (from 1) on; row i has the blocks up to ``block_ends[i]``, from where the last ended."""

    row: int
    arrival_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    blocks: Ints
    block_ends: Ints

    def picked(self, rows: NDArray[Any]) -> Batch:
        """Those of its rows."""
        sizes = np.diff(np.concatenate(([0], self.block_ends)))
        kept = np.zeros(len(self.arrival_s), bool)
        kept[rows] = True
        return Batch(
            row=self.row,
            arrival_s=self.arrival_s[kept],
            prompt_tokens=self.prompt_tokens[kept],
            output_tokens=self.output_tokens[kept],
            blocks=self.blocks[np.repeat(kept, sizes)],
            block_ends=np.cumsum(sizes[kept]),
        )

    def first(self, count: int) -> Batch:
        """At most so many of its first rows."""
        return self.picked(np.arange(len(self.arrival_s)) < count)


class Table(NamedTuple):
    """A recognised trace: its layout, and its rows as a stream."""

    layout: Layout
    batches: Iterator[Batch]


def is_parquet(path: Path) -> bool:
    """Whether the file begins as Parquet does; whoever opens it next says what is wrong with it."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_parquet(path: Path, block_tokens: int | None = None) -> Table:
    """The rows of the trace in ``path``, recognised by its columns; ``block_tokens`` replaces the layout's own.

    Raises InputError with the file and the row.
    """
    where = str(path)
    _check(path)
    reader = arro3.io.read_parquet(where, batch_size=ROWS)
    names = reader.schema.names
    layout = recognised(names, (*JSONL_LAYOUTS, *CSV_LAYOUTS), where)
    if layout.runs:
        raise InputError("runs of blocks are read from JSONL, not from Parquet", where=where, hint="list the blocks")
    columns = _Columns(where, layout, {name.strip().lower(): name for name in names})
    size = layout.block_tokens if block_tokens is None else checks.tokens(block_tokens, "the tokens per block")
    return Table(layout, columns.batches(reader, size or 1))


def _check(path: Path) -> None:
    """Read the whole file in a process of its own: the Parquet reader aborts its process on some damaged files."""
    try:
        read = subprocess.run(
            [sys.executable, "-P", "-c", READ_ALL, str(path)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise InputError(f"cannot be checked ({error.strerror or error})", where=str(path)) from error
    if read.returncode:
        raise InputError("is a damaged or truncated Parquet file", where=str(path), hint="fetch it again")


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a layout in a file; ``names`` by their lower case."""

    where: str
    layout: Layout
    names: dict[str, str]

    def batches(self, reader: arrow.RecordBatchReader, block_tokens: int) -> Iterator[Batch]:
        row = 1
        for batch in reader:
            yield self._batch(batch, row, block_tokens)
            row += batch.num_rows

    def _batch(self, batch: arrow.RecordBatch, row: int, block_tokens: int) -> Batch:
        layout = self.layout
        prompt = self._tokens(batch, layout.prompt, row, least=1)
        blocks, ends = self._blocks(batch, row)
        sizes = np.diff(np.concatenate(([0], ends)))
        over = np.flatnonzero(sizes > -(-prompt // block_tokens))
        if len(over):
            at = int(over[0])
            what = f"{sizes[at]} blocks of {block_tokens} tokens for a prompt of {prompt[at]}"
            raise InputError(what, where=f"{self.where}:{row + at}", hint="give the trace's tokens per block")
        return Batch(
            row=row,
            arrival_s=self._arrivals(batch, row),
            prompt_tokens=prompt,
            output_tokens=self._tokens(batch, layout.output, row, least=0 if layout.zero_output else 1),
            blocks=blocks,
            block_ends=ends,
        )

    def _arrivals(self, batch: arrow.RecordBatch, row: int) -> Floats:
        layout, column = self.layout, self._column(batch, self.layout.arrival, row)
        if arrow.DataType.is_temporal(column.type):
            return _seconds(column)
        if arrow.DataType.is_numeric(column.type):
            try:
                unit_s = layout.seconds(1.0)
            except ValueError:
                what = f"{layout.arrival} is no date and time, but a number"
                raise InputError(what, where=f"{self.where}:{row}") from None
            return np.asarray(column.to_numpy()).astype(np.float64) * unit_s
        return np.array([self._second(text, row + at) for at, text in enumerate(column.to_pylist())], np.float64)

    def _second(self, text: object, row: int) -> float:
        try:
            return float(self.layout.seconds(str(text)))
        except (ValueError, OverflowError) as error:
            what = f"{self.layout.arrival} is no time, but {checks.shown(text)}"
            raise InputError(what, where=f"{self.where}:{row}", hint="every row needs its arrival") from error

    def _tokens(self, batch: arrow.RecordBatch, name: str, row: int, least: int) -> Ints:
        column = self._column(batch, name, row)
        if not arrow.DataType.is_numeric(column.type):
            raise InputError(f"{name} must be whole numbers, not {column.type}", where=self.where)
        values = np.asarray(column.to_numpy())
        found = np.where(np.isfinite(values), values, -1).astype(np.int64)
        wrong = np.flatnonzero((found != values) | (found < least) | (found > checks.MAX_TOKENS))
        if len(wrong):
            at = int(wrong[0])
            limits = f"from {least} to {checks.MAX_TOKENS:,}"
            what = f"{name} must be a whole number {limits}, not {values[at]}"
            raise InputError(what, where=f"{self.where}:{row + at}")
        return found

    def _blocks(self, batch: arrow.RecordBatch, row: int) -> tuple[Ints, Ints]:
        """The blocks of all rows one after the other, and where those of each end."""
        name = self.names.get((self.layout.blocks or "").lower())
        if name is None:
            return np.empty(0, np.int64), np.zeros(batch.num_rows, np.int64)
        lists = [each or () for each in batch.column(name).to_pylist()]
        for at, each in enumerate(lists):
            here = f"{self.where}:{row + at}"
            if not isinstance(each, (list, tuple)) or any(type(one) is not int for one in each):
                raise InputError(f"{name} must be lists of whole numbers", where=here)
            if len(set(each)) < len(each):
                raise InputError(f"{name} names one block twice", where=here, hint=ONE_NAME)
        ids = np.array([one for each in lists for one in each], np.int64)
        return ids, np.cumsum([len(each) for each in lists], dtype=np.int64)

    def _column(self, batch: arrow.RecordBatch, name: str, row: int) -> arrow.Array:
        column = batch.column(self.names[name.lower()])
        if column.null_count:
            at = next(place for place, value in enumerate(column.to_pylist()) if value is None)
            raise InputError(f"the row lacks {name}", where=f"{self.where}:{row + at}")
        return column


def _seconds(column: arrow.Array) -> Floats:
    """Seconds since 2020 of dates and times; without zone they are UTC."""
    unit = column.type.time_unit or "s"
    per_s = UNITS_PER_S[unit]
    counts = np.asarray(column.cast(arrow.DataType.int64()).to_numpy())
    found: Floats = (counts - int(EPOCH.timestamp()) * per_s) / per_s
    return found
