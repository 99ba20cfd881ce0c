"""Parquet files that grow while a run goes on, row group by row group, so that its records need not stay in memory.

A file is written beside its place (``.NAME.part``, locked, as ``atomic`` does), by a thread of its own that takes the
next rows as they come; it is moved to its place when it is whole. A program that is killed leaves the part, which
nobody reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import IO, Any, cast

import arro3.core as arrow
import arro3.io

from servewise.atomic import PART, locked, settle
from servewise.errors import InputError
from servewise.records.columns import RequestColumns, StepColumns
from servewise.records.placing import unwritable
from servewise.records.run_directory import REQUESTS, STEPS
from servewise.records.tables import COMPRESSION, requests_table, steps_table

GROUP_ROWS = 131_072
AHEAD = 2  # parts that wait for the disk
LOOK_S = 0.2


class _Disk(RawIOBase):
    """A file that swallows what it cannot write, and knows why: the Parquet writer ends the thread on errors."""

    def __init__(self, path: Path) -> None:
        self.error: OSError | None = None
        self._file = path.open("wb")
        locked(self._file.fileno())

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self.error = error
        return len(data)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        super().close()
        try:
            self._file.close()
        except OSError as error:
            self.error = self.error or error


class GrowingTable:
    """A Parquet file at ``path`` that takes tables of one schema one after the other; it is there after ``finish``.

    Raises InputError where the disk takes no more.
    """

    def __init__(self, path: Path, *, compression: str = COMPRESSION) -> None:
        self.path = path
        self._part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
        self._compression = compression
        self._queue: Queue[arrow.Table | None] = Queue(AHEAD)
        self._thread: Thread | None = None
        self._disk: _Disk

    def append(self, table: arrow.Table) -> None:
        """Add the rows of ``table``."""
        if self._thread is None:
            try:
                self._disk = _Disk(self._part)
            except OSError as error:
                raise unwritable(self.path.parent, error) from error
            self._thread = Thread(target=self._write, args=(table.schema,), daemon=True)
            self._thread.start()
        self._put(table)

    def finish(self) -> dict[str, Any]:
        """All rows are there: move it to its place. Returns its size [bytes] and checksum."""
        assert self._thread is not None, "a table without rows has no schema to grow by"
        self._end()
        try:
            with self._part.open("rb") as file:
                found = {"bytes": os.fstat(file.fileno()).st_size}
                found_sum = hashlib.file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
            self._part.replace(self.path)
            settle(self.path.parent)
        except OSError as error:
            raise unwritable(self.path.parent, error) from error
        return found | {"sha256": found_sum}

    def close(self) -> None:
        """Leave it: what is not finished goes."""
        with contextlib.suppress(InputError):
            self._end()
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)

    def _put(self, table: arrow.Table) -> None:
        assert self._thread is not None
        while self._thread.is_alive():
            self._failed()
            try:
                self._queue.put(table, timeout=LOOK_S)
                return
            except Full:
                continue

    def _end(self) -> None:
        if self._thread is None:
            return
        while self._thread.is_alive():
            with contextlib.suppress(Full):
                self._queue.put(None, timeout=LOOK_S)
                break
        self._thread.join()
        self._thread = None
        self._disk.close()
        self._failed()

    def _failed(self) -> None:
        error = self._disk.error
        if error is not None:
            raise unwritable(self.path.parent, error) from error

    def _write(self, schema: arrow.Schema) -> None:
        reader = arrow.RecordBatchReader.from_batches(schema, self._batches())
        file = cast("IO[bytes]", self._disk)
        try:
            arro3.io.write_parquet(reader, file, compression=self._compression, max_row_group_size=GROUP_ROWS)
        except Exception as error:  # arro3 raises its own bare Exception; the caller's thread tells it
            self._disk.error = self._disk.error or OSError(str(error))

    def _batches(self) -> Iterator[arrow.RecordBatch]:
        while (table := self._queue.get()) is not None:
            yield from table.to_batches()


class GrowingRun:
    """The row files of the run in ``directory``, which is there: what a recorder writes into, a part at a time."""

    def __init__(self, directory: Path) -> None:
        self._tables = {name: GrowingTable(directory / name) for name in (REQUESTS, STEPS)}
        self._rows = dict.fromkeys(self._tables, 0)

    def requests(self, requests: RequestColumns) -> None:
        """The next requests that ended."""
        self._append(REQUESTS, requests_table(requests))

    def steps(self, steps: StepColumns) -> None:
        """The next steps."""
        self._append(STEPS, steps_table(steps))

    def finish(self) -> dict[str, dict[str, Any]]:
        """All rows are there: the files as ``run.json`` tells of them."""
        if not self._rows[REQUESTS]:
            self.requests(RequestColumns())
        if not self._rows[STEPS]:
            self.steps(StepColumns())
        return {name: table.finish() for name, table in self._tables.items()}

    def close(self) -> None:
        """Leave them: what is not finished goes."""
        for table in self._tables.values():
            table.close()

    def _append(self, name: str, table: arrow.Table) -> None:
        self._rows[name] += 1
        self._tables[name].append(table)
