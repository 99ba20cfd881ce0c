"""A run directory that is written while the run goes on, and can be read at every moment of it.

The directory appears with its ``run.json``, which says that the run is partial and where its rows are: in the journal
of a measured run, nowhere yet in a simulated one, which the same seed gives again. At the end the Parquet files are
written, then ``run.json`` is replaced in one move, and the journal goes. Killed anywhere in between, what is there is
read by ``read_run``. One program at a time writes it (``claim``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servewise.atomic import is_part, replace_whole, settle, sweep
from servewise.errors import InputError
from servewise.records.claim import Claim
from servewise.records.columns import RequestColumns
from servewise.records.journal import Journal
from servewise.records.placing import placed, refuse_occupied, unwritable
from servewise.records.run_directory import HEADER, NOWHERE, PARTIAL, REQUESTS, STEPS, RunRecord, header_bytes, sums_of
from servewise.records.tables import requests_to_parquet, steps_to_parquet


class OpenRun:
    """The directory of a run under way. ``begin`` makes it, ``append`` keeps each row, ``finish`` closes it whole.

    ``announce`` makes the one of a run that keeps its rows itself until the end.
    """

    def __init__(self, directory: Path, claim: Claim | None, journal: Journal | None) -> None:
        self.directory = directory
        self._claim, self._journal = claim, journal

    @classmethod
    def begin(cls, directory: Path, run: RunRecord, *, claimed: bool = False) -> OpenRun:
        """Make ``directory``, which must not exist or be empty, with the header of ``run`` (its rows are not read).

        ``claimed``: the caller has made it and holds its claim; it may hold other files. Raises InputError where it
        cannot be written, before any request was sent for it.
        """
        made = cls(directory, _headed(directory, header_bytes(run, {}, PARTIAL), claimed=claimed), None)
        try:
            made._journal = Journal(directory / PARTIAL)
            settle(directory)
        except BaseException as error:
            made.close()
            if isinstance(error, OSError):
                raise _unwritable(directory, error) from error
            raise
        return made

    @classmethod
    def announce(cls, directory: Path, run: RunRecord) -> OpenRun:
        """Make ``directory`` for a run whose rows come at its end; ``append`` is not for it.

        One that was announced and left by a program that is dead is taken over: it holds nothing.
        """
        text = header_bytes(run, {}, NOWHERE)
        if not is_left(directory):
            return cls(directory, placed(directory, {HEADER: text}), None)
        try:
            claim = Claim(directory)
            sweep(directory, old_s=0.0)
            replace_whole(directory / HEADER, text)
        except OSError as error:
            raise unwritable(directory, error) from error
        return cls(directory, claim, None)

    def append(self, requests: RequestColumns, row: int) -> None:
        """Keep row ``row`` of ``requests``; InputError where the disk takes no more."""
        assert self._journal is not None, "an announced run has no journal"
        try:
            self._journal.append(requests, row)
        except OSError as error:
            raise _unwritable(self.directory, error) from error

    def finish(self, run: RunRecord, beside: Mapping[str, bytes] | None = None) -> None:
        """Close the directory with the whole ``run`` and the files ``beside`` it.

        Where that fails, what was appended stays readable.
        """
        files = {REQUESTS: requests_to_parquet(run.requests)}
        if run.steps is not None:
            files[STEPS] = steps_to_parquet(run.steps)
        files |= beside or {}
        try:
            for name, data in files.items():
                replace_whole(self.directory / name, data)
        except OSError as error:
            self.close()
            raise _unwritable(self.directory, error) from error
        self.finish_grown(run, sums_of(files))

    def finish_grown(self, run: RunRecord, sums: Mapping[str, Mapping[str, Any]]) -> None:
        """Close the directory of ``run``, whose row files are there: ``sums`` is what is said of them."""
        try:
            replace_whole(self.directory / HEADER, header_bytes(run, sums))
            if self._journal is not None:
                self._journal.path.unlink()
        except OSError as error:
            raise _unwritable(self.directory, error) from error
        finally:
            self.close()

    def close(self) -> None:
        """Leave the run as it is; where it was not finished: partial."""
        if self._journal is not None:
            self._journal.close()
        if self._claim is not None:
            self._claim.release()


def is_left(directory: Path) -> bool:
    """Whether ``directory`` holds an announced run and nothing that is of use: row files of one that never ended."""
    try:
        files = {name for name in os.listdir(directory) if not is_part(name)}
        return files <= {HEADER, REQUESTS, STEPS} and _announced(json.loads((directory / HEADER).read_bytes()))
    except (OSError, ValueError, RecursionError):
        return False


def refuse_kept(directory: Path) -> None:
    """InputError where ``directory`` holds anything that an announced run would write over."""
    if not is_left(directory):
        refuse_occupied(directory)


def _announced(header: object) -> bool:
    return isinstance(header, dict) and header.get("partial") == NOWHERE


def _headed(directory: Path, header: bytes, *, claimed: bool) -> Claim | None:
    if not claimed:
        return placed(directory, {HEADER: header})
    try:
        replace_whole(directory / HEADER, header)
    except OSError as error:
        raise _unwritable(directory, error) from error
    return None


def _unwritable(directory: Path, error: OSError) -> InputError:
    kept = (directory / PARTIAL).exists()
    return unwritable(directory, error, "what ended before is kept in it" if kept else None)
