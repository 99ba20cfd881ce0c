"""Mutants that survive because they are the same program, each judged by hand; they never count as killed."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from benchmarks.mutation.mutants import Mutant

JUDGED = Path(__file__).with_name("equivalent.toml")


@cache
def _judged() -> dict[tuple[str, str, str, str], str]:
    rows = tomllib.loads(JUDGED.read_text())["mutant"]
    return {(row["file"], row["function"], row["before"], row["after"]): row["reason"] for row in rows}


def reason_of(room: str, mutant: Mutant, change: tuple[str, str]) -> str | None:
    """Why ``mutant`` is no mutant; None where nobody says so."""
    return _judged().get((f"{room}/{mutant.path}", mutant.name, *change))
