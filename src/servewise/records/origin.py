"""What a kept run was made by: the command line, and the files that it read, each known by its content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from servewise.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that was read: what it was to the command (``workload``, ``trace``), its name as it was given, its size.

    A file is another one where its content is: a name says nothing of that.
    """

    of: str
    name: str
    bytes: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in ``run.json``."""
        return asdict(self)

    def __str__(self) -> str:
        """Short, for a line that tells two contents apart."""
        return f"{self.bytes:,} bytes, SHA-256 {self.sha256[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """``command`` is the whole line as it was typed, keys hidden; from Python the name of the command."""

    command: str = ""
    sources: tuple[Source, ...] = ()


def source_at(of: str, path: Path, name: str | None = None) -> Source:
    """The file at ``path``, called ``name`` (None: as ``path`` is); InputError where it cannot be read."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            return Source(of=of, name=name or str(path), bytes=file.tell(), sha256=found)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from error


def sources_from(value: object, where: str) -> tuple[Source, ...]:
    """What a header holds as sources; InputError where they are none. Runs of before have no such key (None)."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(map(_is_source, value)):
        raise InputError("sources must name files with their bytes and sha256", where=where)
    return tuple(Source(**{name: each[name] for name in ("of", "name", "bytes", "sha256")}) for each in value)


def changed(then: Iterable[Source], now: Iterable[Source]) -> list[tuple[Source, Source]]:
    """The files of one name whose content is not what it was.

    >>> old, new = (Source(of="trace", name="t.csv", bytes=9, sha256=each) for each in ("0a", "0b"))
    >>> changed([old], [old]), changed([old], [new]) == [(old, new)]
    ([], True)
    """
    known = {(each.of, each.name): each for each in then}
    pairs = ((known.get((each.of, each.name)), each) for each in now)
    return [(before, after) for before, after in pairs if before is not None and before.sha256 != after.sha256]


def _is_source(value: object) -> bool:
    kinds = {"of": str, "name": str, "bytes": int, "sha256": str}
    return isinstance(value, dict) and all(type(value.get(name)) is kind for name, kind in kinds.items())
