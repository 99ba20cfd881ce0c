"""What a value holds, as one number."""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import hashlib
import io
import pickle
from collections.abc import Sequence
from typing import Any

from servewise.scratch import Column

SETS = (set, frozenset)


def content_of(value: object) -> str:
    """SHA-256 of what ``value`` holds, whichever objects hold it.

    Written as a pickle, of which nothing is ever read, without notes on which objects are the same ones; but with them
    where an object holds itself, as estimators with a memory do. Columns on disk count by their numbers.
    """
    hashed = _Hash()
    _write(hashed, value)
    return hashed.sum.hexdigest()


def _write(hashed: _Hash, value: Any) -> None:
    whole = _Hash()
    try:
        _pickled(whole, value, fast=True)
    except (ValueError, RecursionError, KeyError):  # it holds itself somewhere; KeyError: or sets that no field holds
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
    pickler = _Pickler(hashed, protocol=5)
    pickler.fast = fast
    pickler.dump(value)


class _Pickler(pickle.Pickler):
    """Sets in fields are written in order: theirs is another in each process, and a fast pickler loses count of them.

    (CPython 3.11, Modules/_pickle.c, ``save_frozenset`` enters a level that it never leaves.)
    """

    dispatch_table = {**copyreg.dispatch_table, Column: lambda column: (str, (column.digest(),))}  # noqa: RUF012

    def reducer_override(self, value: Any) -> Any:
        """How ``value`` is written, where a field of it is a set."""
        kind: Any = type(value)
        names = _fields_of(kind)
        values = [getattr(value, name) for name in names]
        if not any(isinstance(each, SETS) for each in values):
            return NotImplemented
        ordered = [sorted(each) if isinstance(each, SETS) else each for each in values]
        return tuple, ((kind.__module__, kind.__qualname__, *ordered),)


@functools.cache
def _fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a data class that may be sets."""
    if not dataclasses.is_dataclass(kind) or isinstance(kind, dataclasses.Field):
        return ()
    fields = dataclasses.fields(kind)
    return tuple(each.name for each in fields) if any("set[" in str(each.type) for each in fields) else ()


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
