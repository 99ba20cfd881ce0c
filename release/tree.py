"""The source tree: where it lies, what git holds of it, what pyproject.toml asks for."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PACKAGE = "src/servewise"
#: What a user installs, besides the core. The other extras are for working on servewise.
USER_EXTRAS = ("app", "engine", "fit", "measure", "notebook", "ray")


def project(root: Path = ROOT) -> dict[str, Any]:
    """The table ``[project]`` of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return table


def user_extras(root: Path = ROOT) -> tuple[str, ...]:
    """The extras meant for users that pyproject.toml has, in order of name."""
    return tuple(each for each in USER_EXTRAS if each in project(root)["optional-dependencies"])


def version(root: Path = ROOT) -> str:
    """The version, as the package says it; pyproject.toml takes it from the same line."""
    found = re.search(r'^__version__ = "([^"]+)"$', (root / PACKAGE / "version.py").read_text(), re.M)
    assert found, "version.py has no __version__"
    return found[1]


def supported(root: Path = ROOT) -> tuple[str, ...]:
    """The Python versions that pyproject.toml promises, by its classifiers: ('3.11', ...)."""
    begin = "Programming Language :: Python :: 3."
    return tuple(each.rpartition(" ")[2] for each in project(root)["classifiers"] if each.startswith(begin))


def requirements(extras: tuple[str, ...] = (), root: Path = ROOT) -> Iterator[Requirement]:
    """What the core and ``extras`` ask for by name, extras of our own followed."""
    table = project(root)
    yield from map(Requirement, table["dependencies"])
    for extra in extras:
        yield from _of_extra(extra, table["optional-dependencies"])


def _of_extra(extra: str, table: dict[str, list[str]]) -> Iterator[Requirement]:
    for each in map(Requirement, table[extra]):
        if canonicalize_name(each.name) != "servewise":
            yield each
            continue
        for inner in sorted(each.extras):
            yield from _of_extra(inner, table)


def git(*words: str, root: Path = ROOT) -> str:
    """What git says, without the last line end. Raises CalledProcessError where git refuses."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def commit_time_s(root: Path = ROOT) -> int:
    """When HEAD was committed [s since 1970]: the date that everything made from it carries."""
    return int(git("log", "-1", "--format=%ct", root=root))
