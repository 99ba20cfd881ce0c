"""Rows as they are measured, in a file of JSON lines: a run that was broken off goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servewise.errors import InputError

Row = Mapping[str, Any]
HEADER = "servewise.probe-quantise-log/1"


class RowLog:
    """A file whose first line says what was measured, the others one row each; None: nothing is kept.

    Raises InputError where the file holds another measurement, or is no such file. A last line cut short by an
    interruption is measured again.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any]) -> None:
        self._path = path
        self._about = {"schema": HEADER, **about}
        self.rows: dict[str, Row] = {}
        if path is not None:
            self.rows = self._read(path) if path.exists() else self._begin(path)

    def add(self, name: str, row: Row) -> None:
        """Keep a row, on the disk at once."""
        self.rows[name] = row
        if self._path is not None:
            self._append(self._path, {"name": name, "row": row})

    def _begin(self, path: Path) -> dict[str, Row]:
        if not path.absolute().parent.is_dir():
            raise InputError("its folder does not exist", where=str(path), hint="make it first")
        self._append(path, self._about)
        return {}

    def _read(self, path: Path) -> dict[str, Row]:
        try:
            lines = path.read_text("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", where=str(path)) from None
        whole, cut = lines[:-1], lines[-1]
        if cut:
            path.write_text("".join(f"{line}\n" for line in whole), "utf-8")
        if not whole:
            return self._begin(path)
        header, *rest = (_parsed(line, path) for line in whole)
        self._check(header, path)
        return {str(each.get("name")): each.get("row", {}) for each in rest}

    def _check(self, header: Row, path: Path) -> None:
        differing = [key for key, value in self._about.items() if header.get(key) != value]
        if differing:
            what = f"holds another measurement (its {', '.join(differing)} differs)"
            raise InputError(what, where=str(path), hint="give another file")

    @staticmethod
    def _append(path: Path, entry: Mapping[str, Any]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, allow_nan=False) + "\n")


def _parsed(line: str, path: Path) -> Row:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("is no log of this probe", where=str(path), hint="give another file")
    return found
