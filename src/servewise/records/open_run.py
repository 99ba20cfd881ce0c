"""A run directory that is written while the run goes on, and can be read at every moment of it.

``run.json`` stands first, and says that the run is partial: its rows are in the journal. At the end the Parquet files
are written, then ``run.json`` is replaced in one move, and the journal goes. Killed anywhere in between, what is there
is read by ``read_run``.
"""

from __future__ import annotations

import json
from pathlib import Path

from servewise.atomic import replace_whole
from servewise.errors import InputError
from servewise.records.columns import RequestColumns
from servewise.records.journal import Journal
from servewise.records.run_directory import (
    HEADER,
    PARTIAL,
    REQUESTS,
    STEPS,
    RunRecord,
    header_of,
    refuse_occupied,
)
from servewise.records.tables import requests_to_parquet, steps_to_parquet


class OpenRun:
    """The directory of a run under way. ``begin`` makes it, ``append`` keeps each row, ``finish`` closes it whole."""

    def __init__(self, directory: Path, journal: Journal) -> None:
        self.directory = directory
        self._journal = journal

    @classmethod
    def begin(cls, directory: Path, run: RunRecord) -> OpenRun:
        """Make ``directory``, which must not exist or be empty, with the header of ``run`` (its rows are not read).

        Raises InputError where it cannot be written, before any request was sent for it.
        """
        refuse_occupied(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            made = cls(directory, Journal(directory / PARTIAL))
            replace_whole(directory / HEADER, _text(run, {}, partial=True))
        except OSError as error:
            raise _unwritable(directory, error) from error
        return made

    def append(self, requests: RequestColumns, row: int) -> None:
        """Keep row ``row`` of ``requests``; InputError where the disk takes no more."""
        try:
            self._journal.append(requests, row)
        except OSError as error:
            raise _unwritable(self.directory, error) from error

    def finish(self, run: RunRecord) -> None:
        """Close the directory with the whole ``run``; where that fails, what was appended stays readable."""
        self._journal.close()
        try:
            files = {REQUESTS: requests_to_parquet(run.requests)}
            if run.steps is not None:
                files[STEPS] = steps_to_parquet(run.steps)
            for name, data in files.items():
                replace_whole(self.directory / name, data)
            replace_whole(self.directory / HEADER, _text(run, files, partial=False))
            self._journal.path.unlink()
        except OSError as error:
            raise _unwritable(self.directory, error) from error

    def close(self) -> None:
        """Leave the run as it is: partial."""
        self._journal.close()


def _text(run: RunRecord, files: dict[str, bytes], *, partial: bool) -> bytes:
    header = header_of(run, files) | ({"partial": PARTIAL} if partial else {})
    return (json.dumps(header, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _unwritable(directory: Path, error: OSError) -> InputError:
    hint = "what ended before is kept in it" if (directory / PARTIAL).exists() else "another place for the run"
    return InputError(f"the run cannot be written ({error.strerror or error})", where=str(directory), hint=hint)
