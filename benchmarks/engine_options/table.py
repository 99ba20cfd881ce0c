"""One engine's options as a file: which names an option has, how many values it takes, which values it may have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "servewise" / "check" / "engines" / "options"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """``takes``: none (a switch), one, optional or many values."""

    names: tuple[str, ...]
    takes: str
    choices: tuple[str, ...] = ()
    deprecated: bool = False

    def row(self) -> dict[str, object]:
        """The option as JSON, without what is usual."""
        found: dict[str, object] = {"names": list(self.names), "takes": self.takes}
        if self.choices:
            found["choices"] = list(self.choices)
        return found | ({"deprecated": True} if self.deprecated else {})


def write(engine: str, version: str, address: str, made_by: str, options: list[Option]) -> None:
    """The engine's file, one option a line."""
    head = {"engine": engine, "version": version, "address": address, "made_by": made_by}
    lines = ",\n".join("  " + json.dumps(each.row()) for each in options)
    text = json.dumps(head)[:-1] + ', "options": [\n' + lines + "\n]}\n"
    (ROOT / f"{engine}.json").write_text(text, encoding="utf-8")
