"""A field of a form: what it is called, which option of the command it writes, what it may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from servewise.app.uploads import REFERENCE, RUN
from servewise.errors import InputError

Kind = Literal["text", "number", "range", "choice", "many", "flag", "name", "names", "files"]
LONGEST = 400  # characters of a value
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*(/[\w.+-]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """``name`` stands in the address, ``option`` on the command line, unless it is an ``argument``
    there, or makes others (``View.rewrite``).

    ``default`` is what the form holds where the address says nothing; an empty value leaves the option to the command.
    ``form`` is how a value reads on the line; fields with one option are joined there. ``suggest`` names a list of the
    catalogue, ``accept`` the endings of files that may be uploaded in place of a name, ``numbers`` a slider's least,
    most and step. ``files`` are runs and uploads. ``more``: folded away at first.
    """

    name: str
    label: str
    option: str = ""
    argument: bool = False
    kind: Kind = "text"
    default: str = ""
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    hint: str = ""
    form: str = "{}"
    suggest: str = ""
    accept: str = ""
    numbers: tuple[float, float, float] = (0, 1, 0.05)
    group: str = "Model and hardware"
    more: bool = False

    def checked(self, value: str) -> str:
        """``value`` as the line may hold it; InputError names this field."""
        if len(value) > LONGEST or not value.isprintable():
            raise InputError(f"is longer than {LONGEST} characters, or holds what cannot be printed", where=self.name)
        if self.kind in ("name", "names"):
            self._check_names(value)
        if self.kind == "files":
            self._check_files(value)
        if self.kind in ("choice", "many"):
            self._check_choices(value)
        return value

    def shown(self) -> tuple[tuple[str, str], ...]:
        """Each choice with the words for it."""
        return tuple(zip(self.choices, self.words or self.choices, strict=True))

    def _check_names(self, value: str) -> None:
        parts = value.split(",") if self.kind == "names" else [value]
        for part in filter(None, map(str.strip, parts)):
            if not (_NAME.fullmatch(part) or REFERENCE.fullmatch(part)):
                files = f", or upload a file ({self.accept})" if self.accept else ""
                raise InputError(f"{part!r} is no name", where=self.name, hint=f"take one that is suggested{files}")

    def _check_files(self, value: str) -> None:
        for part in filter(None, value.split(",")):
            if not (REFERENCE.fullmatch(part) or RUN.fullmatch(part)):
                raise InputError(f"{part!r} is no file of this page", where=self.name, hint="upload one")

    def _check_choices(self, value: str) -> None:
        for part in filter(None, value.split(",")):
            if part not in self.choices:
                raise InputError(f"{part!r} is none of {', '.join(filter(None, self.choices))}", where=self.name)


def field_of(error: InputError, fields: Mapping[str, Field], values: Mapping[str, str]) -> str:
    """The name of the field that ``error`` is about; empty where it is about none.

    Of several fields that write one option, it is the one whose value the error cites, else the first.
    """
    where = error.where.replace("-", "_").strip()
    for key in (where, where.split(":")[0], where.split(" ")[0]):
        if key in fields:
            return key
        writing = [name for name, field in fields.items() if key and field.option == f"--{key.replace('_', '-')}"]
        if writing:
            return next((name for name in writing if values.get(name) and values[name] in error.what), writing[0])
    kind = re.match(r"unknown (?:hub )?(model|accelerator|workload|policy|precision)", error.what)
    return kind[1] if kind and kind[1] in fields else ""


def number(value: str, field: Field) -> str:
    """A slider's value as a plain number, if it is one within its ends.

    Python reads more than the file that it is written into: ``1_6``, and digits of other scripts.
    """
    least, most, _ = field.numbers
    try:
        found = float(value)
    except ValueError:
        found = least - 1
    if not least <= found <= most:
        raise InputError(f"must be a number from {least:g} to {most:g}, not {value[:40]!r}", where=field.name)
    return f"{found:.12g}"
