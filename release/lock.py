"""The locks of what CI installs: made from pyproject.toml by uv, held against it, held against what is installed.

    python -m release.lock [--upgrade]    write the locks in locks/ anew
    python -m release.lock --check        do they satisfy pyproject.toml, and is what is installed what they say?

A release younger than a week is not taken. No address of an index is written: where packages come from is a matter of
the machine's own settings, what they are is a matter of their hashes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

from packaging.version import Version

from release.pins import Pin, pins, python_on_linux
from release.tree import ROOT, requirements, supported

#: What CI installs of pyproject.toml's extras.
CI_EXTRAS = ("test", "engine-test", "measure", "ray", "release")
#: The build is the system's own, so it has no hash; see locks/README.md.
UNLOCKED = frozenset({"torch"})
COOLING_DAYS = 7
SHA256 = re.compile("[0-9a-f]{64}")


def compile_locks(root: Path, upgrade: bool) -> None:
    """Write the locks. Raises CalledProcessError where uv finds no solution."""
    cutoff = (datetime.now(UTC) - timedelta(days=COOLING_DAYS)).strftime("%Y-%m-%dT00:00:00Z")
    extras = [word for each in CI_EXTRAS for word in ("--extra", each)]
    _compile(root, "ci.txt", ["pyproject.toml", "locks/torch-needs.in", *extras], cutoff, upgrade)
    _compile(root, "locking.txt", ["locks/locking.in"], cutoff, upgrade)
    _compile(root, "model.txt", ["locks/model.in", "--no-deps"], cutoff, upgrade)


def _compile(root: Path, name: str, inputs: list[str], cutoff: str, upgrade: bool) -> None:
    words = ["--universal", "--python-version", supported(root)[0], "--generate-hashes", "--exclude-newer", cutoff]
    words += ["--quiet", "--no-header", "--no-emit-index-url", "--overrides", "locks/without.txt"]
    words += ["--upgrade"] if upgrade else []
    uv = [sys.executable, "-m", "uv", "pip", "compile"]
    subprocess.run([*uv, *inputs, *words, "-o", f"locks/{name}"], cwd=root, check=True)
    path = root / "locks" / name
    path.write_text(f"# Made by `make lock` from releases before {cutoff[:10]}; do not edit.\n" + path.read_text())


def drift(root: Path = ROOT) -> Iterator[str]:
    """Each way in which the lock does not satisfy pyproject.toml, for every supported Python on Linux."""
    locked = pins(root / "locks" / "ci.txt")
    for version in supported(root):
        chosen = {each.name: each for each in locked if each.holds(python_on_linux(version))}
        for need in requirements(CI_EXTRAS, root):
            if need.name in UNLOCKED or (need.marker and not need.marker.evaluate(dict(python_on_linux(version)))):
                continue
            pin = chosen.get(need.name)
            if pin is None:
                yield f"Python {version}: {need.name} is not locked"
            elif not need.specifier.contains(pin.version, prereleases=True):
                yield f"Python {version}: {need.name} is locked at {pin.version}, not {need.specifier}"


def unhashed(locked: tuple[Pin, ...]) -> Iterator[str]:
    """Each pin that has no hash, or one that is no SHA-256."""
    return (each.name for each in locked if not each.hashes or not all(map(SHA256.fullmatch, each.hashes)))


def other_than_locked(root: Path = ROOT) -> Iterator[str]:
    """Each package of the lock that is installed here in another version, or not at all."""
    for pin in (*pins(root / "locks" / "ci.txt"), *pins(root / "locks" / "model.txt")):
        if not pin.holds():
            continue
        try:
            if Version(installed(pin.name)) != pin.version:
                yield f"{pin.name}: locked {pin.version}, installed {installed(pin.name)}"
        except PackageNotFoundError:
            yield f"{pin.name}: locked {pin.version}, not installed"


def main() -> int:
    """Write the locks, or hold them against what they must satisfy."""
    parser = argparse.ArgumentParser(prog="python -m release.lock", description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest of everything")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on any difference")
    wanted = parser.parse_args()
    if not wanted.check:
        compile_locks(ROOT, wanted.upgrade)
    wrong = [*drift(), *(other_than_locked() if wanted.check else ())]
    print("\n".join(wrong) or "the locks satisfy pyproject.toml" + (", and so does what is installed" * wanted.check))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
