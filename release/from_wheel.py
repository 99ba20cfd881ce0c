"""The built wheel at work, with the source tree out of reach, on each Python that is promised.

    python -m release.from_wheel [--pythons "3.11 3.12"] [--wheel WHEEL] [--rooms ROOM,...] [--extras EXTRA,...]
        [--lowest]

For each Python, in a folder of its own: a fresh environment, the wheel and what it asks for and nothing else; the
commands of a first day with warnings as errors; then the core's tests, copied out of the tree. With ``--extras`` each
extra is added, put to what it is for, and its tests run. Versions are the locked ones; ``--lowest`` takes the lowest of
pyproject.toml. A Python that is not on this machine is named, and fails when it was asked for.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from release.artefacts import built, export
from release.first_days import FIRST_DAYS
from release.interpreters import interpreter, version_of
from release.place import Failed, Place, place
from release.tree import ROOT, git, supported

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
    "ray": ("executing/test_command.py", "executing/test_executor.py", "executing/test_remote.py"),
}
#: Tests in the core's rooms that need an extra.
BEYOND = ("report/test_notebook.py",)
#: A test of the source tree itself: a benchmark writes the file that it compares.
OF_THE_TREE = "steptime/test_accuracy.py::test_shipped_file_is_what_its_command_writes"
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


def first_day(here: Place, commands: Sequence[Sequence[str]] = COMMANDS) -> None:
    """The core alone: nothing heavy came along, it is the installed one, its commands end well without a warning."""
    heavy = here.brought() & set(HEAVY)
    if heavy:
        raise Failed(f"the core brought {', '.join(sorted(heavy))}")
    where = here.run(here.python, "-c", "import servewise; print(servewise.__file__)").strip()
    if not Path(where).is_relative_to(here.folder):
        raise Failed(f"servewise was found at {where}, not in the environment")
    for words in commands:
        said = here.servewise(*words)
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
        shown = [FIRST_DAYS[extra](here)] if extra in FIRST_DAYS else []
        here.equip(wanted.lowest)
        shown.append(rooms_pass(here, OF_EXTRA[extra], wanted.workers, wanted.commit))
        yield f"extra {extra}: {', '.join(shown)}"


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
