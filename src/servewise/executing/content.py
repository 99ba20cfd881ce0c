"""What a value holds, as one number."""

from __future__ import annotations

import copyreg
import dataclasses
import hashlib
import io
import pickle
from collections.abc import Sequence
from typing import Any

from servewise.scratch import Column


def content_of(value: object) -> str:
    """SHA-256 of what ``value`` holds, whichever objects hold it.

    Written as a pickle, of which nothing is ever read, without notes on which objects are the same ones; but with them
    where an object holds itself, as estimators with a memory do. Columns on disk count by their numbers, not their path.
    """
    hashed = _Hash()
    _write(hashed, value)
    return hashed.sum.hexdigest()


def _write(hashed: _Hash, value: Any) -> None:
    whole = _Hash()
    try:
        _pickled(whole, value, fast=True)
    except (ValueError, RecursionError):  # it holds itself somewhere
        parts = _parts(value)
        if parts is None:
            _pickled(hashed, value, fast=False)
            return
        hashed.write(f"{type(value).__module__}:{type(value).__qualname__}:{len(parts)}:".encode())
        for each in parts:
            _write(hashed, each)
    else:
        hashed.write(whole.sum.digest())


def _pickled(hashed: _Hash, value: Any, *, fast: bool) -> None:
    pickler = pickle.Pickler(hashed, protocol=5)
    pickler.fast = fast
    pickler.dispatch_table = {**copyreg.dispatch_table, Column: lambda column: (str, (column.digest(),))}
    pickler.dump(value)


def _parts(value: Any) -> Sequence[Any] | None:
    if isinstance(value, (list, tuple)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name) for each in dataclasses.fields(value)]
    return None


class _Hash(io.RawIOBase):
    """A file that only hashes what is written to it."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()

    def write(self, content: Any) -> int:
        view = memoryview(content)
        self.sum.update(view)
        return view.nbytes
