"""A disk that fails: each call that changes it is counted, and one of them raises instead."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from servewise.records import journal

CALLS = {
    os: ("fsync", "replace", "chmod", "mkdir"),
    tempfile: ("mkstemp", "mkdtemp"),
    shutil: ("rmtree",),
    Path: ("mkdir", "replace", "unlink"),
}


class Disk:
    """Fails at its ``failing``-th call with the error ``code`` (never, where that is 0); ``calls`` tells them all."""

    def __init__(self, patch: pytest.MonkeyPatch, failing: int = 0, code: int = errno.ENOSPC) -> None:
        self.calls: list[str] = []
        self.failing, self.code = failing, code
        for owner, names in CALLS.items():
            for name in names:
                patch.setattr(owner, name, self._counting(name, getattr(owner, name)))
        patch.setattr(os, "fdopen", self._opening(os.fdopen))
        patch.setattr(journal.Journal, "_write", self._journalling(journal.Journal._write))

    def count(self, name: str) -> None:
        """One more call; OSError where it is the one that fails."""
        self.calls.append(name)
        if len(self.calls) == self.failing:
            raise OSError(self.code, os.strerror(self.code))

    def done(self, name: str, *given: Any) -> None:
        """That call, with what it was ``given``, is done; for those who record (``powercut``)."""

    def _counting(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self.count(name)
            found = real(*given, **named)
            self.done(name, *given)
            return found

        return call

    def _opening(self, real: Callable[..., IO[bytes]]) -> Callable[..., IO[bytes]]:
        def opened(*given: Any, **named: Any) -> Any:
            return _File(real(*given, **named), self)

        return opened

    def _journalling(self, real: Callable[..., None]) -> Callable[..., None]:
        def write(of: journal.Journal, line: memoryview) -> None:
            try:
                self.count("write a row")
            except OSError:
                real(of, line[: len(line) // 2])  # what a full disk takes before it says so
                raise
            real(of, line)
            self.done("write a row")

        return write


class _File:
    """A file whose writes are counted."""

    def __init__(self, file: IO[bytes], disk: Disk) -> None:
        self._file, self._disk = file, disk

    def write(self, data: bytes) -> int:
        """Half of it, where the disk fails."""
        try:
            self._disk.count("write")
        except OSError:
            self._file.write(data[: len(data) // 2])
            raise
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
