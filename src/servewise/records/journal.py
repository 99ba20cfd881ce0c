"""The journal of a run under way: one line of JSON for each request that ended, written as it ends.

A line ends with its place in the run and the CRC-32 of all before it: ``..., "row": 7, "crc32": "0a1b2c3d"}``. So what
a kill leaves is told from damage: a last line without its end was being written, and is dropped; any other line that is
not as it was written is damage, and is named. A line of an earlier version, without the two, is taken as it stands.

What lasts: a row is with the operating system when ``append`` returns, so it outlives the process, killed at any
moment. It is on the disk at most ``SYNC_S`` later, brought there by a thread beside (the load client waits for no
disk), so a power cut takes the last second. When the run ends in good order its rows become ``requests.parquet``
(``open_run``).
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from zlib import crc32

from servewise.errors import InputError
from servewise.records.columns import STATUS_NAMES, RequestColumns, TokenTimes

FLOATS = ("scheduled_s", "sent_s", "admitted_s", "first_token_s", "end_s")
INTS = ("id", "prompt_tokens", "cached_tokens", "output_tokens", "preemptions")
REST = ("status", "token_times_s", "error")
MAX_LINE_BYTES = 2**24
SYNC_S = 1.0
HINT = "measure again: the rows before it are whole"
MOST = 2**63
SEAL = re.compile(rb',"row":(\d{1,18}),"crc32":"([0-9a-f]{8})"\}\n\Z')


class Journal:
    """The file at ``path``, which must be new. Every row is with the operating system when ``append`` returns.

    Raises OSError as the file system does (a full disk, a folder that is gone), also for a flush to the disk that
    failed since the last row; a row that could not be written leaves none of itself.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = self._size = 0
        self._file = path.open("xb", buffering=0)
        self._flusher = _Flusher(self._file.fileno())

    def append(self, requests: RequestColumns, row: int) -> None:
        """Add row ``row`` of ``requests``."""
        self._flusher.check()
        line = sealed(as_line(requests, row), self.rows)
        try:
            self._write(memoryview(line))
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._size)
                self._file.seek(self._size)
            raise
        self.rows += 1
        self._size += len(line)
        self._flusher.dirty = True

    def close(self) -> None:
        """No more rows; those that are there are on the disk, as far as it takes them."""
        if not self._file.closed:
            self._flusher.end()
            self._file.close()

    def _write(self, line: memoryview) -> None:
        while line:  # a raw file may take less than it is given
            line = line[self._file.write(line) or 0 :]

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Flusher:
    """Brings a file to the disk once a second, where it has grown."""

    def __init__(self, handle: int) -> None:
        self.dirty = False
        self._handle = handle
        self._error: OSError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what the last flush failed with."""
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """The last flush."""
        self._over.set()
        self._thread.join()
        self._flush()

    def _run(self) -> None:
        while not self._over.wait(SYNC_S):
            self._flush()

    def _flush(self) -> None:
        if not self.dirty:
            return
        self.dirty = False
        try:
            os.fsync(self._handle)
        except OSError as error:
            self._error = error


@dataclass(frozen=True, slots=True)
class Journalled:
    """What a journal holds: the rows that are as they were written, and the numbers of the lines that are not.

    ``torn``: the last line was being written, and is left out. ``lost`` counts rows that should be there by the places
    of those that are, and are not (of the last ones it cannot know).
    """

    requests: RequestColumns = field(default_factory=lambda: RequestColumns(token_times=TokenTimes()))
    damaged: tuple[int, ...] = ()
    torn: bool = False
    lost: int = 0


def as_line(requests: RequestColumns, row: int) -> dict[str, Any]:
    """A row as plain JSON: a time that never came is null, and so are token times where none are recorded."""
    times = requests.token_times
    known = times.times[times.offsets[row] : times.offsets[row + 1]].tolist() if times else None
    return (
        {name: getattr(requests, name)[row] for name in INTS}
        | {name: _or_null(getattr(requests, name)[row]) for name in FLOATS}
        | {"status": STATUS_NAMES[requests.status[row]], "token_times_s": known, "error": requests.errors.get(row)}
    )


def sealed(line: Mapping[str, Any], place: int) -> bytes:
    """The line at ``place`` (from 0 on) as it stands in the file."""
    body = json.dumps(line, separators=(",", ":")).encode()[:-1] + b',"row":%d' % place
    return body + b',"crc32":"%08x"}\n' % crc32(body)


def read_journal(path: Path) -> Journalled:
    """The rows of a journal; InputError where it cannot be read, or a line is whole and yet no request of a run."""
    reading = _Reading(str(path))
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
                reading.take(number, line)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from error
    return reading.found()


class _Reading:
    """A journal, line by line."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.requests = RequestColumns(token_times=TokenTimes())
        self._damaged: list[int] = []
        self._torn = self._zeros = False
        self._next = self._lost = 0  # the place that the next row has; rows passed over

    def take(self, number: int, line: bytes) -> None:
        """The next line."""
        if not line.endswith(b"\n"):  # the last one, or part of one that is too long to be any
            self._torn = len(line) < MAX_LINE_BYTES
            self._damaged += [] if self._torn else [number]
            return
        place, body = self._opened(line)
        if body is None or place < self._next:
            self._damaged.append(number)
            self._zeros |= b"\0" in line
            return
        _add(self.requests, _parsed(body, f"{self.where}:{number}"), f"{self.where}:{number}")
        self._lost += place - self._next
        self._next = place + 1

    def found(self) -> Journalled:
        """All of it; InputError for a file of which no line is a row.

        Zeros are what a power cut leaves of pages that had not come to the disk, and no other file's text.
        """
        if self._damaged and not len(self.requests) and not self._zeros:
            raise InputError("is no line of a journal", where=f"{self.where}:{self._damaged[0]}", hint=HINT)
        return Journalled(self.requests, tuple(self._damaged), self._torn, self._lost)

    def _opened(self, line: bytes) -> tuple[int, bytes | None]:
        """The place and the row of a line; no row where it is not as it was written."""
        seal = SEAL.search(line)
        if seal is None:
            earlier = _loaded(line)
            whole = isinstance(earlier, dict) and not {"row", "crc32"} & set(earlier)
            return self._next, line if whole else None
        signed = line[: seal.start()] + b',"row":' + seal[1]
        sound = crc32(signed) == int(seal[2], 16)
        return int(seal[1]), line[: seal.start()] + b"}\n" if sound else None


def _or_null(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _loaded(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _parsed(line: bytes, where: str) -> Mapping[str, Any]:
    row = _loaded(line)
    if not isinstance(row, dict) or set(row) != {*INTS, *FLOATS, *REST}:
        raise InputError("is no request of a run", where=where, hint=HINT)
    return row


def _add(found: RequestColumns, row: Mapping[str, Any], where: str) -> None:
    status, error, times = row["status"], row["error"], row["token_times_s"]
    whole = all(type(row[name]) is int and -MOST <= row[name] < MOST for name in INTS)
    seconds = [row[name] for name in FLOATS] + (times if isinstance(times, list) else [])
    timed = all(value is None or (type(value) in (int, float) and abs(value) < MOST) for value in seconds)
    worded = status in STATUS_NAMES and (error is None or isinstance(error, str))
    if not (whole and timed and worded and (times is None or (isinstance(times, list) and None not in times))):
        raise InputError("is no request of a run", where=where, hint=HINT)
    if error is not None:
        found.errors[len(found)] = error
    for name in INTS:
        getattr(found, name).append(row[name])
    for name in FLOATS:
        getattr(found, name).append(math.nan if row[name] is None else float(row[name]))
    assert found.token_times is not None
    found.token_times.append(map(float, times or ()))
    found.status.append(STATUS_NAMES.index(status))
