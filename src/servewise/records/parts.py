"""The rows of a run directory a part at a time, for runs too long for memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import arro3.core as arrow
import arro3.io

from servewise.errors import InputError
from servewise.records.columns import RequestColumns, StepColumns
from servewise.records.run_directory import REQUESTS, STEPS
from servewise.records.tables import BATCH_ROWS, requests_from_table, steps_from_table


def parts_of(directory: Path, files: Mapping[str, Any]) -> Iterator[RequestColumns | StepColumns]:
    """The requests, then the steps, of the run in ``directory``, whose header says ``files`` of them.

    Each file is compared with its checksum before it is parsed. InputError for one that is missing or damaged.
    """
    where = str(directory / REQUESTS)
    yield from (requests_from_table(each, where) for each in _tables(directory / REQUESTS, files))
    if STEPS in files:
        where = str(directory / STEPS)
        yield from (steps_from_table(each, where) for each in _tables(directory / STEPS, files))


def _tables(path: Path, files: Mapping[str, Any]) -> Iterator[arrow.Table]:
    entry = files.get(path.name)
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from error
    if not isinstance(entry, dict) or entry.get("sha256") != found:
        what = "is damaged or truncated: it is not the file that run.json describes"
        raise InputError(what, where=str(path), hint="copy the run again, or make it again")
    try:
        for batch in arro3.io.read_parquet(str(path), batch_size=BATCH_ROWS):
            yield arrow.Table.from_batches([batch])
    except InputError:
        raise
    except Exception as error:  # arro3 raises its own bare Exception
        raise InputError("is no Parquet file", where=str(path), hint="make the run again") from error
