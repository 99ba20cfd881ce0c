"""Effects that others published, beside the simulator's: python -m benchmarks.accuracy.published_effects.

Each is an experiment of its own under ``effects/``, with its source and conditions. Writes
benchmarks/results/published_effects.json.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from benchmarks.accuracy.effects.effect import Effect
from benchmarks.record import RESULTS, save, table

EXPERIMENTS = ("paged", "continuous", "chunked", "preemption", "speculating", "disaggregation")


def effects(names: tuple[str, ...] = EXPERIMENTS) -> list[Effect]:
    """Those of the experiments ``names``."""
    found: list[Effect] = []
    for name in names:
        found += import_module(f"benchmarks.accuracy.effects.{name}").effects()
    return found


def recorded_effects() -> list[dict[str, Any]]:
    """Those of the result of record."""
    found: list[dict[str, Any]] = json.loads((RESULTS / "published_effects.json").read_text("utf-8"))["effects"]
    return found


def main() -> None:
    """Print the table and write the record."""
    found = effects(tuple(sys.argv[1:]) or EXPERIMENTS)
    rows = [[each.name, each.published, each.ours, "yes" if each.holds else "NO"] for each in found]
    table(("effect", "published", "ours", "within"), rows)
    save("published_effects", {"effects": [each.to_json() for each in found]})


if __name__ == "__main__":
    main()
