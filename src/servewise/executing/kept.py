"""What the finished tasks of a sweep gave, kept in a file as they finish: a sweep that was broken off goes on."""

from __future__ import annotations

import binascii
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import UnionType
from typing import Any, get_origin, get_type_hints

from servewise.atomic import make_folder, settle
from servewise.errors import InputError
from servewise.executing.build import difference, this_build
from servewise.executing.content import content_of
from servewise.executing.notes import note
from servewise.executing.plain import from_plain, to_plain
from servewise.records.origin import Source, changed, sources_from

SCHEMA = "servewise.kept/1"
MISSING: Any = object()
SYNC_S = 1.0
MOST_FILES, MOST_HEAD = 1_000, 2**16


class Kept:
    """The file of the sweep over ``shared`` in ``folder``: a header, then a line of JSON for each task that finished.

    A sweep is known by the content of what its tasks share and by what computes it (``build``), a task by its function
    and content: a file never answers for another question, workload, price or version. Lines that are torn or damaged
    are left out, and their tasks done again. Where the folder keeps results of other contents of the ``sources``, or
    of another build, a line says that they are not used.
    """

    def __init__(self, folder: Path, shared: object, sources: Sequence[Source] = ()) -> None:
        self._sweep = content_of((SCHEMA, sorted(this_build().items()), shared))
        self._sources = tuple(sources)
        self._flushed_s = -math.inf
        self.path = folder / f"{self._sweep[:24]}.jsonl"
        self._lines: dict[str, Any] = {}
        try:
            make_folder(folder)
            if self.path.exists() and not self.path.is_file():  # a pipe would make us wait for whoever writes to it
                raise OSError(0, f"{self.path.name} is no file")
            self._lines = _lines_of(self.path)
            self._file: io.FileIO | None = io.FileIO(self.path, "a+")
            self._begin()
        except OSError as error:
            raise InputError(f"cannot be written ({error.strerror})", where="keep", hint="another folder") from error

    def find(self, function: Callable[..., Any], task: object) -> Any:
        """What ``function`` made of ``task``, or ``MISSING``."""
        plain = self._lines.get(_key(function, task), MISSING)
        try:
            found = plain if plain is MISSING else from_plain(plain)
            return found if found is MISSING or isinstance(found, _kind_of(function)) else MISSING
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):  # not written by us
            return MISSING

    def add(self, function: Callable[..., Any], task: object, result: object) -> None:
        """Keep ``result``, with the operating system when this returns; a full disk ends keeping, not the sweep.

        It is on the disk too, but for results that come within a second after one that was brought there.
        """
        if self._file is None:
            return
        try:
            self._write({"task": _key(function, task)}, to_plain(result))
            if time.monotonic() - self._flushed_s >= SYNC_S:
                self._flush()
        except OSError as error:
            note(f"{self.path}: no more results are kept ({error.strerror})")
            self.close()

    def close(self) -> None:
        """No more results; those that are there are on the disk, as far as it takes them."""
        if self._file is not None:
            with suppress(OSError):
                self._flush()
            self._file.close()
            self._file = None

    def forget(self) -> None:
        """Take the file away."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _begin(self) -> None:
        """A header in a new file; a torn line of an old one is closed."""
        assert self._file is not None
        size = self._file.seek(0, io.SEEK_END)
        if size == 0:
            self._tell_of_others()
            made_of = [each.to_json() for each in self._sources]
            self._write({"schema": SCHEMA, "build": dict(this_build()), "sources": made_of}, None)
            self._flush()
            settle(self.path.parent)
            return
        self._file.seek(size - 1)
        if self._file.read(1) != b"\n":
            self._file.write(b"\n")

    def _tell_of_others(self) -> None:
        """That what is kept is of another content, or another build: nobody should wonder why all is done again."""
        if not self._sources:
            return
        said = {_said(*each, self._sources) for each in _others(self.path)}
        for text in sorted(filter(None, said)):
            note(f"{self.path.parent} {text}: none of them is used")

    def _flush(self) -> None:
        assert self._file is not None
        os.fsync(self._file.fileno())
        self._flushed_s = time.monotonic()

    def _write(self, head: dict[str, Any], result: Any) -> None:
        """One line in one piece, as several sweeps may write to the file at once."""
        assert self._file is not None
        text = json.dumps(result, separators=(",", ":"), allow_nan=False)
        line = json.dumps(head | {"check": _check(text), "result": text}, separators=(",", ":")).encode() + b"\n"
        if self._file.write(line) != len(line):
            raise OSError(28, "No space left on device")


def _others(path: Path) -> Iterator[tuple[Mapping[str, str], tuple[Source, ...]]]:
    """Build and sources of the other files beside ``path``, as far as they say them."""
    for other in sorted(path.parent.glob("*.jsonl"))[:MOST_FILES]:
        with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError, InputError):
            if other == path or not other.is_file():
                continue
            with other.open("rb") as file:
                head = json.loads(file.readline(MOST_HEAD))
            yield dict(head["build"].items()), sources_from(head.get("sources"), str(other))


def _said(build: Mapping[str, str], then: Sequence[Source], now: Sequence[Source]) -> str:
    """Why results of ``then`` are not those that are asked for; nothing where they are of other files."""
    for before, after in changed(then, now):
        return f"keeps results of another {after.of} {after.name} ({before}; now {after})"
    other = difference(this_build(), build) if tuple(then) == tuple(now) else None
    return f"keeps results of these files by another build ({other})" if other else ""


def _kind_of(function: Callable[..., Any]) -> type:
    """What ``function`` says that it returns, as far as a value can be held against it."""
    try:
        said: Any = get_type_hints(function).get("return", object)
    except (NameError, TypeError):  # names that are imported for type checkers alone
        return object
    kind = get_origin(said) or said
    return kind if isinstance(kind, type) and kind is not UnionType else object


def _key(function: Callable[..., Any], task: object) -> str:
    return content_of((function.__module__, function.__qualname__, task))


def _check(text: str) -> str:
    return f"{binascii.crc32(text.encode()):08x}"


def _lines_of(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    found = {}
    with path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line)
                if "task" in row and _check(row["result"]) == row["check"]:
                    found[row["task"]] = json.loads(row["result"])
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                continue
    return found
