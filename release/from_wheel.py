"""The built wheel at work, with the source tree out of reach, on each Python that is promised.

    python -m release.from_wheel [--pythons "3.11 3.12"] [--wheel WHEEL] [--rooms ROOM,...] [--extras EXTRA,...]
        [--lowest]

For each Python, in a folder of its own: a fresh environment, the wheel and what it asks for and nothing else; the
commands of a first day with warnings as errors; then the core's tests, copied out of the tree. With ``--extras`` each
extra is added and its tests run. Versions are the locked ones; ``--lowest`` takes the lowest of pyproject.toml.
A Python that is not on this machine is named, and fails when it was asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from release.artefacts import built, export
from release.interpreters import interpreter, version_of
from release.pins import pins
from release.tree import ROOT, git, requirements, supported

#: The rooms whose tests need nothing that the tests' own tools do not bring.
ROOMS = (
    "batching",
    "deployment",
    "hardware",
    "metrics",
    "modelspec",
    "plan",
    "pricing",
    "records",
    "report",
    "simulate",
    "steptime",
    "study",
    "techniques",
    "workload",
)
#: What the tests of an extra are; the engine's torch has one build for each Python, so it may be missing here.
OF_EXTRA = {
    "app": ("app/test_guard.py", "app/test_line.py"),
    "engine": ("engine/cache", "engine/sampling"),
    "fit": ("calibrate/test_descent.py",),
    "measure": ("measure/dialect", "measure/wire"),
    "notebook": ("test_tabular.py", "report/test_notebook.py"),
}
#: Tests in the core's rooms that need an extra.
BEYOND = ("report/test_notebook.py",)
#: A test of the source tree itself: a benchmark writes the file that it compares.
OF_THE_TREE = "steptime/test_accuracy.py::test_shipped_file_is_what_its_command_writes"
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "scipy", "pyarrow", "httpx2")
#: Such as go with the lowest: later pyarrow needs NumPy 2 and does not say so, Starlette's client was httpx.
OLD_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "scipy", "pyarrow<18", "httpx")
#: What no command of the core may need.
HEAVY = ("torch", "ray", "transformers", "scipy", "pandas", "polars", "starlette", "uvicorn", "httptools", "orjson")
SIZE = ("size", "llama-3.1-8b", "--accelerator", "l4", "--context", "8192")
LOADED = ("llama-3.1-8b", "--workload", "azure-conv", "--requests", "60")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--version",),
    ("--help",),
    (*SIZE, "--json"),
    (*SIZE, "--output", "size.html"),
    ("steptime", "llama-3.1-8b", "--accelerator", "h100-sxm", "--batch", "1,32", "--json"),
    ("simulate", *LOADED, "--accelerator", "h100-sxm", "--run-dir", "run", "--output", "simulate.html"),
    ("report", "run", "--output", "report.html"),
    ("plan", *LOADED, "--accelerators", "l40s,h100-sxm", "--slo", "ttft_p95<=2s", "--json"),
    ("catalogue", "--json"),
)
PYTEST = """[pytest]
addopts = -q --import-mode=importlib -p no:cacheprovider
pythonpath = tests .
filterwarnings = {warnings}
markers = slow: takes over 5 seconds
"""


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

    def run(self, *words: str | Path, **env: str) -> str:
        """What a command prints here. Raises Failed where it does not end with 0."""
        clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        told = [str(each) for each in words]
        done = subprocess.run(told, cwd=self.folder, env=clean | env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{' '.join(told)}\n{(done.stdout + done.stderr)[-4000:]}")
        return done.stdout

    def uv(self, *words: str | Path) -> str:
        """Let uv work on the environment; it looks for files where pip is told to look."""
        links = os.environ.get("UV_FIND_LINKS") or os.environ.get("PIP_FIND_LINKS", "")
        env = {"UV_FIND_LINKS": links} if links else {}
        return self.run(sys.executable, "-m", "uv", "pip", words[0], "--python", self.python, *words[1:], **env)

    def install(self, extras: Sequence[str], lowest: bool) -> None:
        """Install the wheel with ``extras``, at the locked or at the lowest versions."""
        wheel = f"servewise[{','.join(extras)}] @ {self.wheel.as_uri()}"
        versions = _lowest(extras) if lowest else ["-c", str(self._locked())]
        self.uv("install", "--quiet", *versions, wheel)

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


def first_day(here: Place, commands: Sequence[Sequence[str]] = COMMANDS) -> None:
    """The core alone: nothing heavy came along, it is the installed one, its commands end well without a warning."""
    heavy = here.brought() & set(HEAVY)
    if heavy:
        raise Failed(f"the core brought {', '.join(sorted(heavy))}")
    where = here.run(here.python, "-c", "import servewise; print(servewise.__file__)").strip()
    if not Path(where).is_relative_to(here.folder):
        raise Failed(f"servewise was found at {where}, not in the environment")
    for words in commands:
        said = here.run(here.python, "-m", "servewise", *words, PYTHONWARNINGS=here.warnings)
        if "--json" in words:
            json.loads(said)
    for page in here.folder.glob("*.html"):
        if not page.read_text().lstrip().lower().startswith("<!doctype html>"):
            raise Failed(f"{page.name} is no page")


def rooms_pass(here: Place, paths: Sequence[str], workers: str, commit: str = "HEAD") -> str:
    """Run those of the tests, as ``commit`` has them, and say pytest's last line."""
    if not (here.folder / "tests").exists():
        export(here.folder, commit, ROOT, "tests", "benchmarks")  # benchmarks holds what tests compare with
        (here.folder / "pytest.ini").write_text(PYTEST.format(warnings=here.warnings))
    left = [f"--deselect=tests/{OF_THE_TREE}"]
    left += [f"--ignore=tests/{each}" for each in BEYOND if each not in paths]
    words = ["-m", "pytest", "-n", workers, "-m", "not slow", *left, *(f"tests/{each}" for each in paths)]
    return here.run(here.python, *words).strip().splitlines()[-1]


def proof(python: Path, wheel: Path, folder: Path, wanted: argparse.Namespace) -> Iterator[str]:
    """What one Python shows, line by line. Raises Failed at the first step that fails."""
    here = place(folder, wheel, python, "default" if wanted.lowest else "error")
    here.install((), wanted.lowest)
    first_day(here)
    yield f"{len(COMMANDS)} commands" + ("" if wanted.lowest else " without a warning")
    if wanted.rooms:
        here.equip(wanted.lowest)
        yield f"core's tests: {rooms_pass(here, wanted.rooms, wanted.workers, wanted.commit)}"
    for extra in wanted.extras:
        here.install((extra,), wanted.lowest)
        here.equip(wanted.lowest)
        yield f"extra {extra}: {rooms_pass(here, OF_EXTRA[extra], wanted.workers, wanted.commit)}"


def each_python(wheel: Path, scratch: Path, wanted: argparse.Namespace) -> Iterator[tuple[bool, str]]:
    """Whether each Python passed, and its line."""
    for name in wanted.pythons:
        python = interpreter(name)
        if python is None:
            yield False, f"Python {name}: not on this machine"
            continue
        try:
            lines = list(proof(python, wheel, scratch / name.replace("/", "_"), wanted))
            yield True, f"Python {version_of(python)}: {'; '.join(lines)}"
        except Failed as failed:
            yield False, f"Python {name}: {failed}"


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def asked(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m release.from_wheel", description="The built wheel at work.")
    parser.add_argument("--pythons", type=_words, default=list(supported()), help="versions or paths, by default all")
    parser.add_argument("--wheel", type=Path, help="by default one is built from HEAD")
    parser.add_argument("--rooms", type=_words, default=list(ROOMS), help="whose tests are run; '' for none")
    parser.add_argument("--extras", type=_words, default=[], help=f"of {', '.join(OF_EXTRA)}")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions that pyproject.toml allows")
    parser.add_argument("--workers", default="auto", help="pytest's processes")
    wanted = parser.parse_args(arguments)
    wanted.commit = git("rev-parse", "HEAD")  # someone may commit meanwhile
    return wanted


def main() -> int:
    """Print a line for each Python; fail where one fails or is missing."""
    wanted = asked()
    with tempfile.TemporaryDirectory() as scratch:
        wheel = wanted.wheel or built(Path(scratch) / "built", wanted.commit).wheel
        passed = True
        for well, line in each_python(wheel.resolve(), Path(scratch), wanted):
            print(line, flush=True)
            passed = passed and well
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
