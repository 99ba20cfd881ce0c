"""The version of record of what comes along: the locked one; of torch, which has no lock, the one that is pinned."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from packaging.utils import canonicalize_name

from release.lock import UNLOCKED
from release.pins import pins
from release.tree import ROOT, requirements


@cache
def versions() -> Mapping[str, str]:
    """Version by name, for the Python that runs this."""
    exact = (each for each in requirements(("engine",)) if each.name in UNLOCKED)
    pinned = {canonicalize_name(each.name): next(iter(each.specifier)).version for each in exact}
    return pinned | {each.name: str(each.version) for each in pins(ROOT / "locks" / "ci.txt") if each.holds()}
