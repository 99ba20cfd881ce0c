"""The versions of record of what comes along: the locked ones; of torch, which has no lock, the one that is pinned."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from packaging.utils import canonicalize_name

from release.lock import UNLOCKED
from release.pins import pins
from release.tree import ROOT, requirements

LOCKS = ("ci.txt", "locking.txt", "model.txt")


class Locked(NamedTuple):
    """A package at a version that somebody installs."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@cache
def versions() -> Mapping[str, str]:
    """Version by name, for the Python that runs this."""
    return dict(_pinned()) | {each.name: str(each.version) for each in pins(ROOT / "locks" / "ci.txt") if each.holds()}


@cache
def all_locked() -> tuple[Locked, ...]:
    """All that any Python or system installs from any lock: of some packages several versions."""
    locked = (pin for lock in LOCKS for pin in pins(ROOT / "locks" / lock))
    return tuple(sorted({*_pinned(), *(Locked(each.name, str(each.version)) for each in locked)}))


def _pinned() -> tuple[Locked, ...]:
    exact = (each for each in requirements(("engine",)) if each.name in UNLOCKED)
    return tuple(Locked(canonicalize_name(each.name), next(iter(each.specifier)).version) for each in exact)
