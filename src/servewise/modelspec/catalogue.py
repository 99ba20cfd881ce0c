"""The models that ship with the package: one JSON line each in ``data/models.jsonl``.

A line holds ``name``, ``hub`` (the hub ids that this config serves), ``source`` and ``licence`` of the facts, and
``config``, a clean Hugging Face config.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

MODELS = Path(__file__).parent / "data" / "models.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """One shipped model: its config with where it comes from."""

    name: str
    hub: tuple[str, ...]
    source: str
    licence: str
    config: dict[str, Any]


@lru_cache(maxsize=1)
def entries() -> dict[str, Entry]:
    """All entries by name, in alphabetical order."""
    text = MODELS.read_text(encoding="utf-8")
    rows = (json.loads(line) for line in text.splitlines() if line)
    found = {row["name"]: Entry(**{**row, "hub": tuple(row["hub"])}) for row in rows}
    return dict(sorted(found.items()))


def by_name(name: str) -> Entry | None:
    """The entry of that catalogue name, or of that hub id without its owner; upper and lower case alike."""
    return entries().get(name.lower()) or _by_hub_name().get(name.lower())


@lru_cache(maxsize=1)
def _by_hub_name() -> dict[str, Entry]:
    """``llama-3.2-1b-instruct`` and the like, where the name belongs to one entry alone."""
    named = [(hub_id.rpartition("/")[2].lower(), entry) for entry in entries().values() for hub_id in entry.hub]
    count = Counter(name for name, _ in named)
    return {name: entry for name, entry in named if count[name] == 1}


def by_hub_id(hub_id: str) -> Entry | None:
    """The entry that serves this hub id, upper and lower case alike."""
    wanted = hub_id.lower()
    return next((entry for entry in entries().values() if wanted in map(str.lower, entry.hub)), None)
