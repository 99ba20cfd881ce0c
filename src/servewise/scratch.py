"""Columns of numbers on disk, for what grows with the length of a run and so must not stay in memory.

A folder of them lies where the system keeps its temporary files (``TMPDIR`` names another place: where that is memory,
name one on a disk) and goes with its ``Scratch``. Only the process that made a column appends to it; others may read
what is there, by its path, so that a column can be sent to them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from servewise.atomic import OLD_S, locked
from servewise.errors import InputError

PREFIX = "servewise-columns-"
PIECE = 65_536  # rows in memory at a time
HINT = "TMPDIR names the folder for temporary files: name one on a disk with room"


class Folder:
    """A folder for columns and other files; it can be sent to another process, and goes when its owner says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = 0

    def column(self, kind: str = "d") -> Column:
        """A new column of numbers of that ``kind``: d, q, i, b as in ``array``, 1 for yes or no."""
        return Column(self.file(), np.dtype(bool if kind == "1" else kind), owner=self)

    def file(self) -> Path:
        """A name for a new file in it."""
        self._files += 1
        return self.path / str(self._files)

    def folder(self) -> Folder:
        """A new folder in it."""
        found = Folder(self.file())
        try:
            found.path.mkdir()
        except OSError as error:
            raise unwritable(found.path, error) from error
        return found


class Scratch(Folder):
    """A folder for one piece of work.

    It goes with ``close``, or once neither this object nor a column of it is used any more. It is locked till then: one
    whose process was killed goes when the next is made.
    """

    def __init__(self) -> None:
        _sweep()
        try:
            super().__init__(Path(tempfile.mkdtemp(prefix=PREFIX)))
            lock = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise unwritable(Path(tempfile.gettempdir()), error) from error
        locked(lock)
        self._gone = weakref.finalize(self, _remove, self.path, lock)

    def close(self) -> None:
        """Remove it with all that is in it."""
        self._gone()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *of: object) -> None:
        self.close()


class Column:
    """Numbers in a file: appended in order, read by part, ``column[10:20]`` and ``column[-1]`` as of an array.

    Raises InputError where the disk takes no more, or the file is gone.
    """

    def __init__(self, path: Path, kind: np.dtype[Any], length: int = 0, owner: Folder | None = None) -> None:
        self.path, self.kind = path, kind
        self._length, self._owner = length, owner
        self._file: BinaryIO | None = None

    def append(self, values: NDArray[Any]) -> None:
        """Add ``values`` at the end."""
        try:
            if self._file is None:
                self._file = self.path.open("ab", buffering=0)
                weakref.finalize(self, self._file.close)
            left = np.ascontiguousarray(values, self.kind).view(np.uint8)
            while len(left):  # a raw file may take less than it is given
                left = left[self._file.write(left.data) or 0 :]
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._length += len(values)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The rows from ``start`` up to, not with, ``stop``."""
        if stop <= start:
            return np.empty(0, self.kind)
        try:
            found = np.fromfile(self.path, self.kind, stop - start, offset=start * self.kind.itemsize)
        except OSError as error:
            hint = "it is on the disk of the machine that made it: let that one do the work"
            raise InputError(f"cannot be read ({error.strerror or error})", where=str(self.path), hint=hint) from error
        if len(found) < stop - start:
            raise InputError("a temporary file was cut off from outside", where=str(self.path), hint=HINT)
        return found

    def __getitem__(self, rows: int | slice) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self._length)
            return self.read(start, stop)[::step]
        at = rows + self._length if rows < 0 else rows
        return self.read(at, at + 1)[0]

    def __len__(self) -> int:
        """Rows."""
        return self._length

    def pieces(self, start: int = 0, rows: int = PIECE) -> Iterator[NDArray[Any]]:
        """All rows from ``start`` on, some at a time."""
        for at in range(start, self._length, rows):
            yield self.read(at, min(at + rows, self._length))

    def digest(self) -> str:
        """SHA-256 of its numbers."""
        if not self._length:
            return hashlib.sha256().hexdigest()
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def remove(self) -> None:
        """Remove the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give the file's handle back; it can still be read, and appended to."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __getstate__(self) -> tuple[Path, str, int]:
        return self.path, self.kind.str, self._length

    def __setstate__(self, state: tuple[Path, str, int]) -> None:
        self.__init__(state[0], np.dtype(state[1]), state[2])  # type: ignore[misc]


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _sweep() -> None:
    """Remove the folders of processes that are dead."""
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > OLD_S:
                    _remove_dead(path)


def _remove_dead(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if locked(handle):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)


def unwritable(path: Path, error: OSError) -> InputError:
    """The error of a temporary file that the disk does not take."""
    return InputError(f"a temporary file cannot be written ({error.strerror or error})", where=str(path), hint=HINT)
