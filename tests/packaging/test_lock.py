"""The locks: all that CI installs, by hash, from no named index, and what pyproject.toml asks for."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from release.lock import CI_EXTRAS, UNLOCKED, drift, unhashed
from release.pins import Pin, pins, python_on_linux
from release.tree import ROOT, supported

LOCKS = sorted((ROOT / "locks").glob("*.txt"))
PINNED = [each for each in LOCKS if each.name != "without.txt"]


def tree(folder: Path) -> Path:
    """A copy of what the locks are held against, to be spoilt."""
    shutil.copytree(ROOT / "locks", folder / "locks")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def respell(path: Path, old: str, new: str) -> None:
    """Write ``new`` for ``old``, which must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_locks_satisfy_pyproject() -> None:
    """Each need of pyproject.toml is locked at a version that it allows, on every Python that it promises."""
    assert list(drift()) == []


def test_a_need_that_is_not_locked_is_told(tmp_path: Path) -> None:
    """A dependency added to pyproject.toml alone is found, on every version of Python."""
    root = tree(tmp_path)
    respell(root / "pyproject.toml", '  "pyyaml>=6",', '  "pyyaml>=6",\n  "simpy>=4",')

    assert list(drift(root)) == [f"Python {each}: simpy is not locked" for each in supported()]


def test_a_bound_above_the_lock_is_told(tmp_path: Path) -> None:
    """A lower bound raised above what is locked is found."""
    root = tree(tmp_path)
    respell(root / "pyproject.toml", '"click>=8.4"', '"click>=99"')

    assert next(drift(root)).endswith("not >=99")


@pytest.mark.parametrize("lock", PINNED, ids=lambda each: each.name)
def test_every_file_is_known_by_its_hash(lock: Path) -> None:
    """Every pin has SHA-256 hashes, so that no other file can be installed under its name."""
    locked = pins(lock)

    assert locked
    assert list(unhashed(locked)) == []


def test_a_pin_without_a_hash_is_told() -> None:
    """No hash, or one of another length, is found."""
    bare = Pin(Requirement("simpy==4.1.1"), ())
    short = Pin(Requirement("simpy==4.1.1"), ("ab" * 16,))

    assert list(unhashed((bare, short))) == ["simpy", "simpy"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda each: each.name)
def test_no_index_is_named(lock: Path) -> None:
    """A lock names no address and sets no option: where packages come from is the machine's business."""
    lines = [each.split("#")[0].strip() for each in lock.read_text().splitlines()]

    assert not [each for each in lines if "//" in each or each.startswith(("-i", "-f", "--index", "--extra", "--find"))]


@pytest.mark.parametrize("python", supported())
def test_one_version_of_each_on_every_python(python: str) -> None:
    """On one Python the markers choose one version of a package, never two."""
    chosen = [each.name for each in pins(ROOT / "locks" / "ci.txt") if each.holds(python_on_linux(python))]

    assert len(chosen) == len(set(chosen))
    assert len(chosen) > 100


def test_no_gpu_library_is_locked() -> None:
    """The lock holds neither torch nor the libraries that a CUDA build brings, and holds all else that torch needs."""
    locked = {each.name for each in pins(ROOT / "locks" / "ci.txt")}
    needs = {Requirement(each) for each in requires("torch") or ()}
    plain = {each.name for each in needs if not each.marker and not each.name.startswith(("nvidia", "triton", "cuda"))}

    assert not [each for each in locked if each.startswith(("nvidia", "triton", "cuda")) or each in UNLOCKED]
    assert plain - locked == set()
    assert {Requirement(each).name for each in (ROOT / "locks/torch-needs.in").read_text().splitlines()[1:]} >= plain


def test_make_installs_the_locks() -> None:
    """`make test` installs the locks by hash, and of servewise the same extras that were locked."""
    recipe = (ROOT / "Makefile").read_text()

    assert re.findall(r"-e '\.\[(.*)\]'", recipe) == [",".join(CI_EXTRAS)]
    assert recipe.count("--require-hashes") >= 3
    assert "-r locks/ci.txt -r locks/model.txt" in recipe
