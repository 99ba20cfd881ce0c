"""The journal of a run under way: one line of JSON for each request that ended, written as it ends.

A run that is killed leaves its journal, and with it all that ended before; the line that was being written is dropped.
When the run ends in good order its rows become ``requests.parquet`` (``open_run``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from servewise.errors import InputError
from servewise.records.columns import STATUS_NAMES, RequestColumns, TokenTimes

FLOATS = ("scheduled_s", "sent_s", "admitted_s", "first_token_s", "end_s")
INTS = ("id", "prompt_tokens", "cached_tokens", "output_tokens", "preemptions")
REST = ("status", "token_times_s", "error")
MAX_LINE_BYTES = 2**24
HINT = "measure again: the rows before it are whole"
MOST = 2**63


class Journal:
    """The file at ``path``, which must be new. Every row is with the operating system when ``append`` returns.

    Raises OSError as the file system does (a full disk, a folder that is gone).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._file = path.open("xb", buffering=0)

    def append(self, requests: RequestColumns, row: int) -> None:
        """Add row ``row`` of ``requests``."""
        line = memoryview(json.dumps(as_line(requests, row), separators=(",", ":")).encode() + b"\n")
        while line:  # a raw file may take less than it is given
            line = line[self._file.write(line) or 0 :]
        self.rows += 1

    def close(self) -> None:
        """No more rows."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def as_line(requests: RequestColumns, row: int) -> dict[str, Any]:
    """A row as plain JSON: a time that never came is null, and so are token times where none are recorded."""
    times = requests.token_times
    known = times.times[times.offsets[row] : times.offsets[row + 1]].tolist() if times else None
    return (
        {name: getattr(requests, name)[row] for name in INTS}
        | {name: _or_null(getattr(requests, name)[row]) for name in FLOATS}
        | {"status": STATUS_NAMES[requests.status[row]], "token_times_s": known, "error": requests.errors.get(row)}
    )


def read_journal(path: Path) -> RequestColumns:
    """The rows of a journal; a last line without its end is dropped. InputError for a file that is no journal."""
    found = RequestColumns(token_times=TokenTimes())
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
                if not line.endswith(b"\n"):
                    break
                _add(found, _parsed(line, f"{path}:{number}"), f"{path}:{number}")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from error
    return found


def _or_null(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _parsed(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("is no line of JSON", where=where, hint=HINT) from error
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
