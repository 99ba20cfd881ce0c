"""Records as Parquet bytes and back: the columns of CONTRACT, Zstandard, readable by any Parquet reader.

A time that never came is NaN. ``token_times_s`` and ``error`` are null where there is none. Bytes are only read back
after their checksum was compared (``run_directory``): the Parquet reader aborts the process on some damaged files.
"""

from __future__ import annotations

import io
from array import array
from typing import Any

import arro3.core as arrow
import arro3.io
import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.records.columns import STATUS_NAMES, RequestColumns, StepColumns, TokenTimes
from servewise.records.selection import recorded

REQUEST_FLOATS = ("scheduled_s", "sent_s", "admitted_s", "first_token_s", "end_s")
REQUEST_INTS = ("id", "prompt_tokens", "cached_tokens", "output_tokens", "preemptions")
REQUEST_REST = ("token_times_s", "status", "error")
REQUEST_OPTIONAL = {"replica": "q", "prefill_s": "d", "preempted_s": "d", "transfer_s": "d"}
STEP_FLOATS = ("start_s", "seconds")
STEP_INTS = ("steps", "decode_sequences", "prefill_tokens", "running", "waiting", "kv_tokens")
STEP_OPTIONAL = {
    "active": "q",
    "replica": "q",
    "lane": "q",
    "plan_s": "d",
    "model_s": "d",
    "sample_s": "d",
}  # only where the run recorded them
COMPRESSION = "zstd(3)"
BATCH_ROWS = 65_536
TYPES = {"d": arrow.DataType.float64(), "q": arrow.DataType.int64()}


def requests_to_parquet(requests: RequestColumns) -> bytes:
    """The request records as Parquet bytes."""
    return _bytes(requests_table(requests))


def steps_to_parquet(steps: StepColumns) -> bytes:
    """The step records as Parquet bytes; the optional columns only where the run recorded them."""
    return _bytes(steps_table(steps))


def requests_table(requests: RequestColumns) -> arrow.Table:
    """The request records as an Arrow table."""
    rows = len(requests)
    columns: dict[str, Any] = {name: _plain(getattr(requests, name), rows, name) for name in REQUEST_INTS[:1]}
    columns |= {name: _plain(getattr(requests, name), rows, name) for name in (*REQUEST_FLOATS, *REQUEST_INTS[1:])}
    columns |= {name: _plain(getattr(requests, name), rows, name) for name in recorded(requests)}
    columns["token_times_s"] = _token_times(requests.token_times, rows)
    status = [STATUS_NAMES[code] for code in requests.status]
    columns["status"] = arrow.Array(status, arrow.DataType.string())
    errors: list[str | None] = [None] * rows
    for row, text in requests.errors.items():
        errors[row] = text.encode("utf-8", "replace").decode()  # a server's bytes may be no text
    columns["error"] = arrow.Array(errors, arrow.DataType.string())
    return arrow.Table.from_pydict(columns)


def steps_table(steps: StepColumns) -> arrow.Table:
    """The step records as an Arrow table."""
    known = [name for name in STEP_OPTIONAL if len(getattr(steps, name)) == len(steps)]
    names = (*STEP_FLOATS, *STEP_INTS, *known)
    return arrow.Table.from_pydict({name: _plain(getattr(steps, name), len(steps), name) for name in names})


def requests_from_parquet(data: bytes, where: str) -> RequestColumns:
    """The request records in Parquet bytes; InputError for a missing or odd column."""
    return requests_from_table(_table(data, where), where)


def steps_from_parquet(data: bytes, where: str) -> StepColumns:
    """The step records in Parquet bytes; InputError for a missing or odd column."""
    return steps_from_table(_table(data, where), where)


def requests_from_table(table: arrow.Table, where: str) -> RequestColumns:
    """The request records in an Arrow table; InputError for a missing or odd column."""
    _check(table, (*REQUEST_INTS, *REQUEST_FLOATS, *REQUEST_REST), where)
    found = RequestColumns()
    for name in REQUEST_FLOATS:
        setattr(found, name, _numbers(table, name, "d", where))
    for name in REQUEST_INTS:
        setattr(found, name, _numbers(table, name, "q", where))
    for name, typecode in REQUEST_OPTIONAL.items():
        if name in table.column_names:
            setattr(found, name, _numbers(table, name, typecode, where))
    found.status = _statuses(list(table["status"].to_pylist()), where)
    found.errors = {row: str(text) for row, text in enumerate(table["error"].to_pylist()) if text is not None}
    found.token_times = _ragged(table["token_times_s"])
    return found


def steps_from_table(table: arrow.Table, where: str) -> StepColumns:
    """The step records in an Arrow table; InputError for a missing or odd column."""
    _check(table, (*STEP_FLOATS, *STEP_INTS), where)
    found = StepColumns()
    for name in STEP_FLOATS:
        setattr(found, name, _numbers(table, name, "d", where))
    for name in STEP_INTS:
        setattr(found, name, _numbers(table, name, "q", where))
    for name, typecode in STEP_OPTIONAL.items():
        if name in table.column_names:
            setattr(found, name, _numbers(table, name, typecode, where))
    return found


def _plain(column: array[Any], rows: int, name: str) -> arrow.Array:
    assert len(column) == rows, f"column {name} has {len(column)} of {rows} rows"
    return arrow.Array.from_numpy(np.frombuffer(column, column.typecode) if rows else np.empty(0, column.typecode))


def _token_times(times: TokenTimes | None, rows: int) -> arrow.Array:
    """A list column; null in every row where token times are not known."""
    if times is None:
        offsets, values = np.zeros(rows + 1, np.int32), np.empty(0)
    else:
        assert len(times.offsets) == rows + 1, "token times must have one list for each row"
        offsets, values = np.array(times.offsets, np.int32), np.array(times.times)
    missing = arrow.Array.from_numpy(np.full(rows, times is None))
    return arrow.list_array(arrow.Array.from_numpy(offsets), arrow.Array.from_numpy(values), mask=missing)


def _bytes(table: arrow.Table) -> bytes:
    buffer = io.BytesIO()
    arro3.io.write_parquet(table, buffer, compression=COMPRESSION)
    return buffer.getvalue()


def _table(data: bytes, where: str) -> arrow.Table:
    try:
        return arro3.io.read_parquet(io.BytesIO(data), batch_size=BATCH_ROWS).read_all()
    except Exception as error:  # arro3 raises its own bare Exception
        raise InputError("is no Parquet file", where=where, hint="make the run again") from error


def _check(table: arrow.Table, needed: tuple[str, ...], where: str) -> None:
    missing = [name for name in needed if name not in table.column_names]
    if missing:
        raise InputError(f"lacks the columns {', '.join(missing)}", where=where, hint="make the run again")


def _numbers(table: arrow.Table, name: str, typecode: str, where: str) -> array[Any]:
    column = table[name]
    if column.null_count or not column.type.equals(TYPES[typecode]):
        wanted = {"d": "64-bit floats", "q": "64-bit whole numbers"}[typecode]
        raise InputError(f"column {name} must hold {wanted} without nulls", where=where, hint="make the run again")
    chunks = (np.ascontiguousarray(chunk.to_numpy(), typecode) for chunk in column.chunks)
    return array(typecode, b"".join(chunk.tobytes() for chunk in chunks))


def _statuses(names: list[Any], where: str) -> array[int]:
    codes = {name: code for code, name in enumerate(STATUS_NAMES)}
    unknown = set(names) - set(codes)
    if unknown:
        raise InputError(f"unknown status {sorted(map(str, unknown))[0][:40]!r}", where=where)
    return array("q", [codes[name] for name in names])


def _ragged(column: arrow.ChunkedArray) -> TokenTimes | None:
    rows = len(column)
    if column.null_count == rows:
        return None
    whole = column.combine_chunks()
    offsets: NDArray[np.int64] = arrow.list_offsets(whole).to_numpy().astype(np.int64)
    values = array("d", np.ascontiguousarray(arrow.list_flatten(whole).to_numpy(), np.float64).tobytes())
    return TokenTimes(array("q", (offsets - offsets[0]).tobytes()), values)
