"""A folder with an environment of its own, the wheel in it, and no way to the source tree."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from release.closure import OF_A_BUILD
from release.lock import UNLOCKED
from release.pins import pins
from release.tree import ROOT, requirements

#: What the tests need beside the wheel.
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "scipy", "pyarrow", "httpx2")
#: Such as go with the lowest: later pyarrow needs NumPy 2 and does not say so, Starlette's client was httpx.
OLD_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "scipy", "pyarrow<18", "httpx")


class Failed(Exception):
    """A step did not end as it must; its message is the step and the last of what was printed."""


@dataclass(frozen=True)
class Place:
    """A folder with an environment of its own and no way to the source tree.

    ``warnings`` is "error", but not among the lowest versions: old releases do what new ones of others warn of.
    """

    folder: Path
    wheel: Path
    warnings: str

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "env" / "bin" / "python"

    def begin(self, *words: str | Path, merged: bool = False, **env: str) -> subprocess.Popen[str]:
        """A command that runs here; ``merged``: what it says on stderr as well."""
        clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        told = [str(each) for each in words]
        stderr = subprocess.STDOUT if merged else subprocess.PIPE
        return subprocess.Popen(
            told, cwd=self.folder, env=clean | env, stdout=subprocess.PIPE, stderr=stderr, text=True
        )

    def run(self, *words: str | Path, merged: bool = False, **env: str) -> str:
        """What a command prints here. Raises Failed where it does not end with 0."""
        with self.begin(*words, merged=merged, **env) as program:
            said, errors = program.communicate()
        if program.returncode:
            raise Failed(f"{' '.join(str(each) for each in words)}\n{(said + (errors or ''))[-4000:]}")
        return said

    def servewise(self, *words: str) -> str:
        """What the installed command prints, its warnings being errors unless the versions are the lowest."""
        return self.run(self.python, "-m", "servewise", *words, PYTHONWARNINGS=self.warnings)

    def uv(self, *words: str | Path, merged: bool = False) -> str:
        """Let uv work on the environment; it looks for files where pip is told to look."""
        links = os.environ.get("UV_FIND_LINKS") or os.environ.get("PIP_FIND_LINKS", "")
        env = {"UV_FIND_LINKS": links} if links else {}
        asked = ("-m", "uv", "pip", words[0], "--python", self.python, *words[1:])
        return self.run(sys.executable, *asked, merged=merged, **env)

    def install(self, extras: Sequence[str], lowest: bool) -> None:
        """Install the wheel with ``extras``, at the locked or at the lowest versions.

        Raises Failed, before it fetches anything, where that would bring gigabytes of an accelerator's libraries.
        """
        wheel = f"servewise[{','.join(extras)}] @ {self.wheel.as_uri()}"
        versions = _lowest(extras) if lowest else ["-c", str(self._locked())]
        if "engine" in extras:
            self._install_torch(self._frozen() if lowest else self._locked())
        self.uv("install", "--quiet", *versions, wheel)

    def _install_torch(self, constraints: Path) -> None:
        """Bring torch before all else: of one version uv takes the build for CPUs, which it holds for a higher one."""
        pinned = [str(each) for each in requirements(("engine",)) if each.name in UNLOCKED]
        torch = ["-c", str(constraints), *pinned]
        plan = self.uv("install", "--dry-run", *torch, merged=True)
        build = [each for each in re.findall(r"^ \+ (\S+)==", plan, re.M) if each.startswith(OF_A_BUILD)]
        if build:
            raise Failed(f"no build of torch for CPUs for this Python here: it would bring {', '.join(build)}")
        self.uv("install", "--quiet", *torch)

    def equip(self, lowest: bool) -> None:
        """Install the tests' tools beside what is there: locked as well, or such as go with the lowest versions."""
        tools = OLD_TOOLS if lowest else TOOLS
        self.uv("install", "--quiet", "-c", self._frozen() if lowest else self._locked(), *tools)

    def _frozen(self) -> Path:
        """What is installed, as constraints, so that a tool does not raise what it needs."""
        frozen = self.folder / "frozen.txt"
        lines = self.uv("freeze").splitlines()
        frozen.write_text("\n".join(each for each in lines if not each.startswith("servewise")))
        return frozen

    def brought(self) -> set[str]:
        """The names of all that is installed, servewise left out."""
        listed = json.loads(self.uv("list", "--format", "json"))
        return {str(canonicalize_name(each["name"])) for each in listed} - {"servewise"}

    def _locked(self) -> Path:
        constraints = self.folder / "constraints.txt"
        constraints.write_text("\n".join(str(each) for each in pins(ROOT / "locks" / "ci.txt")))
        return constraints


def _lowest(extras: Sequence[str]) -> list[str]:
    return ["--resolution", "lowest-direct", *(str(each) for each in requirements(tuple(extras)))]


def place(folder: Path, wheel: Path, python: Path, warnings: str = "error") -> Place:
    """A fresh environment of ``python`` in ``folder``, with a copy of the wheel."""
    folder.mkdir(parents=True)
    made = Place(folder, Path(shutil.copy(wheel, folder)), warnings)
    made.run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", python, folder / "env")
    return made
