"""An answer: the one document that each command gives, for people, scripts and reports alike."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.errors import InputError, UnknownName
from servewise.tabular import Row, columns, tables_in


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """A result with its conditions and caveats.

    ``result`` holds plain JSON values in SI units, with the keys that CONTRACT fixes for ``command``.
    """

    command: str
    conditions: Conditions
    result: Mapping[str, Any]
    caveats: tuple[Caveat, ...] = field(default=())

    def __repr__(self) -> str:
        """One line; the result itself is in ``result``, ``rows`` and ``tables``."""
        sizes = ", ".join(f"{name}: {len(rows)} rows" for name, rows in self.tables.items())
        return f"<Answer of {self.command}; {sizes or 'no tables'}; {len(self.caveats)} caveats>"

    @property
    def schema(self) -> str:
        """The document's schema name, ``servewise.<command>/1``."""
        return f"servewise.{self.command}/1"

    def to_json(self) -> dict[str, Any]:
        """The whole document; infinities and NaN become null, which JSON can hold."""
        return {
            "schema": self.schema,
            "conditions": self.conditions.to_json(),
            "result": finite(dict(self.result)),
            "caveats": [caveat.to_json() for caveat in self.caveats],
        }

    def dumps(self) -> str:
        """The document as JSON text; a file's name that is no text is written as JSON escapes, so that it encodes."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")

    @property
    def tables(self) -> dict[str, list[Row]]:
        """Every table of the result as flat rows of plain values (``tabular``), the command's own first."""
        return tables_in(self.result)

    @property
    def rows(self) -> list[Row]:
        """The rows of the command's own table."""
        return next(iter(self.tables.values()))

    def to_pandas(self, table: str | None = None) -> Any:
        """A pandas DataFrame of the table of that name (None: the first); ``attrs`` hold conditions and caveats."""
        frame = self._frame("pandas", table)
        frame.attrs = {name: part for name, part in self.to_json().items() if name != "result"}
        return frame

    def to_polars(self, table: str | None = None) -> Any:
        """A polars DataFrame of the table of that name (None: the first)."""
        return self._frame("polars", table)

    def _frame(self, library: str, table: str | None) -> Any:
        found = self.tables
        name = table or next(iter(found))
        if name not in found:
            raise UnknownName("table", name, found, where="table", hint=f"one of {', '.join(found)}")
        try:
            frames = import_module(library)
        except ImportError as error:
            raise InputError(f"{library} is not installed", hint=f"pip install {library}") from error
        return frames.DataFrame(columns(found[name]))

    def _repr_html_(self) -> str:
        """What a notebook shows: headline, caveats, charts and tables."""
        return str(_notebook().fragment(self))

    def _repr_markdown_(self) -> str:
        """The same for what shows Markdown alone."""
        return str(_notebook().markdown(self))


def _notebook() -> Any:
    """The room that draws, found when it is asked: this module lies far below it and must not import it."""
    return import_module("servewise.report.notebook")


def finite(value: Any) -> Any:
    """``value`` with every float that JSON cannot hold replaced by None.

    >>> finite({"a": [1.0, float("inf")]})
    {'a': [1.0, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
