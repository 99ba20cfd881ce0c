"""Interpreters are found by name, and none is taken for another."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from release.interpreters import interpreter, version_of
from release.tree import project, supported

HERE = f"3.{sys.version_info.minor}"


def shim(folder: Path, name: str, body: str) -> Path:
    """An executable script of the test's own."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_a_path_is_taken_as_it_is() -> None:
    """An interpreter's path gives that interpreter; a path to nothing gives none."""
    assert interpreter(sys.executable) == Path(sys.executable)
    assert interpreter("/no/such/python") is None


def test_the_first_on_path_that_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shim that refuses, or one that is another version, is passed over; the next one is taken."""
    for each in ("refusing", "other", "good"):
        (tmp_path / each).mkdir()
    shim(tmp_path / "refusing", "python3.77", "exit 127")
    shim(tmp_path / "other", "python3.77", "echo 3.12")
    good = shim(tmp_path / "good", "python3.77", "echo 3.77")
    monkeypatch.setenv(
        "PATH", ":".join(str(tmp_path / each) for each in ("refusing", "other", "good")) + ":/usr/bin:/bin"
    )

    assert interpreter("3.77") == good


def test_pyenv_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that only pyenv keeps is found, the newest patch release of it."""
    for patch in ("3.77.1", "3.77.2"):
        (tmp_path / "versions" / patch / "bin").mkdir(parents=True)
        shim(tmp_path / "versions" / patch / "bin", "python3.77", "echo 3.77")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))

    assert interpreter("3.77") == tmp_path / "versions/3.77.2/bin/python3.77"


def test_what_is_promised() -> None:
    """The classifiers promise 3.11 to 3.14, and the lower bound is the first of them."""
    assert supported() == ("3.11", "3.12", "3.13", "3.14")
    assert project()["requires-python"] == f">={supported()[0]}"
    assert version_of(Path(sys.executable)) == HERE
