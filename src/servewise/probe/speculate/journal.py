"""What was measured so far, as JSON lines: a survey that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from servewise.atomic import replace_whole
from servewise.errors import InputError

SCHEMA = "servewise.probe_speculate.part/1"
Key = tuple[str | int, ...]


class Journal:
    """Results by key, kept in ``path`` as they come (None: only in memory).

    The first line says ``of`` what; a file of another survey is refused. A last line that
    was cut off is measured again.
    """

    def __init__(self, path: Path | None, of: Mapping[str, Any]) -> None:
        self._path = path
        self._found: dict[Key, Any] = {}
        if path is None:
            return
        header = {"schema": SCHEMA, **of}
        lines = _lines(path)
        if lines:
            _refuse_other(lines[0], header, str(path))
            self._found = {tuple(each["key"]): each["value"] for each in lines[1:]}
        _rewrite(path, [header, *({"key": list(key), "value": value} for key, value in self._found.items())])

    def get(self, key: Key, measure: Callable[[], Any]) -> Any:
        """What stands under ``key``, else what ``measure`` gives now (plain JSON), kept."""
        if key not in self._found:
            self._found[key] = measure()
            if self._path is not None:
                _append(self._path, {"key": list(key), "value": self._found[key]})
        return self._found[key]


def _lines(path: Path) -> list[dict[str, Any]]:
    """The file's lines; none where there is no file. A last line without its end is left out."""
    if not path.exists():
        return []
    try:
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except (ValueError, RecursionError):
        lines = [None]
    if not all(isinstance(each, dict) for each in lines) or not all(_is_part(each) for each in lines[1:]):
        raise InputError("holds no survey of this probe", where=str(path), hint="name a new file")
    return lines


def _is_part(line: Mapping[str, Any]) -> bool:
    return isinstance(line.get("key"), list) and "value" in line and all(isinstance(k, (str, int)) for k in line["key"])


def _refuse_other(found: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    differing = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
    if differing:
        what = f"is of another survey: {', '.join(differing)} differ"
        raise InputError(what, where=where, hint="name a new file, or ask the same again")


def _rewrite(path: Path, lines: list[Mapping[str, Any]]) -> None:
    try:
        replace_whole(path, b"".join(map(_line, lines)))
    except OSError as error:
        raise _unwritable(path, error) from error


def _append(path: Path, line: Mapping[str, Any]) -> None:
    """One more line, on the disk when this returns: it stands for minutes of measuring."""
    try:
        with path.open("ab") as file:
            file.write(_line(line))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    hint = "make room there: the same command goes on from what is in it"
    return InputError(f"cannot be written: {error.strerror or error}", where=str(path), hint=hint)


def _line(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n").encode()
