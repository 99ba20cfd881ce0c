"""The answers that the golden tests keep, by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from servewise.answer import Answer
from servewise.report import load_answer

FOLDER = Path(__file__).parent.parent / "golden" / "documents"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def answer(name: str) -> Answer:
    """The answer of that name."""
    return load_answer(FOLDER / f"{name}.json")


def document(name: str) -> dict[str, Any]:
    """Its JSON document."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found
