"""Virtual environments of their own for servers whose packages would not go with ours, made once and kept.

``FOLDER/NAME`` is the environment; ``NAME.log`` beside it what pip said. It counts as made once ``servewise.json`` in
it holds the very recipe; until then making it goes on from what is there (pip keeps what it installed and fetched).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from servewise.atomic import replace_whole
from servewise.errors import InputError, RunFailed
from servewise.measure.servers.log import last_lines
from servewise.units import format_bytes

MADE = "servewise.json"
TOLD = (b"Collecting", b"Building", b"Installing", b"Successfully", b"ERROR")  # of pip's lines
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an environment holds.

    ``packages`` are what pip installs, ``without`` what it takes out again. ``alias`` (name, version): another name
    under which the software looks itself up, written as the metadata of a package. ``needs_bytes``: of disk.
    """

    name: str
    packages: tuple[str, ...]
    without: tuple[str, ...] = ()
    alias: tuple[str, str] | None = None
    needs_bytes: int = 0


def made(recipe: Recipe, folder: Path) -> Path | None:
    """The environment's Python; None where it is not made, or by another recipe."""
    try:
        found = json.loads((folder / recipe.name / MADE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    python = _python(folder / recipe.name)
    return python if found == _kept(recipe) and python.exists() else None


def make(recipe: Recipe, folder: Path, *, tell: Tell | None = None) -> Path:
    """The environment's Python, after making what is missing; ``tell`` gets pip's steps.

    Raises InputError where the disk has no room or the folder cannot be written, RunFailed with pip's last lines.
    """
    if (python := made(recipe, folder)) is not None:
        return python
    place, log = folder / recipe.name, folder / f"{recipe.name}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / f".{recipe.name}.lock"):
            if (python := made(recipe, folder)) is not None:  # another process made it meanwhile
                return python
            _room(recipe, folder)
            return _made(recipe, place, log, tell or (lambda _line: None))
    except OSError as error:
        raise InputError(f"cannot be made ({error.strerror or error})", where=str(place)) from error


def _made(recipe: Recipe, place: Path, log: Path, tell: Tell) -> Path:
    python = _python(place)
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "--no-input")
    with log.open("wb") as output:
        if not python.exists():
            _step((sys.executable, "-m", "venv", str(place)), recipe, log, output.fileno(), tell)
        install = (*pip, "install", "--progress-bar", "off", *recipe.packages)
        _step(install, recipe, log, output.fileno(), tell)
        if recipe.without:
            _step((*pip, "uninstall", "--yes", *recipe.without), recipe, log, output.fileno(), tell)
    if recipe.alias is not None:
        _write_alias(place, *recipe.alias)
    replace_whole(place / MADE, json.dumps(_kept(recipe)).encode())
    return python


def _kept(recipe: Recipe) -> dict[str, object]:
    """The recipe as JSON gives it back."""
    found: dict[str, object] = json.loads(json.dumps(asdict(recipe)))
    return found


def _step(command: Sequence[str], recipe: Recipe, log: Path, output: int, tell: Tell) -> None:
    """One command, its output copied to the log and its lines told."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert child.stdout is not None
    try:
        for line in child.stdout:
            os.write(output, line)
            if line.startswith(TOLD):
                tell(f"{recipe.name}: {line.decode('utf-8', 'replace').strip()[:100]}")
        code = child.wait()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
        child.stdout.close()
    if code != 0:
        what = f"the environment of {recipe.name} could not be made: `{' '.join(command[1:])}` ended with {code}"
        raise RunFailed(f"{what}; its log, {log}, ends: {' | '.join(last_lines(log)) or 'empty'}")


def _write_alias(place: Path, name: str, version: str) -> None:
    """Metadata under which ``importlib.metadata`` finds ``name``, whatever the package is called in the index."""
    for packages in (*place.glob("lib/python*/site-packages"), *place.glob("Lib/site-packages")):
        folder = packages / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(exist_ok=True)
        replace_whole(folder / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode())


def _python(place: Path) -> Path:
    return place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _room(recipe: Recipe, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < recipe.needs_bytes:
        what = f"{recipe.name} takes {format_bytes(recipe.needs_bytes)} of disk, {format_bytes(free)} are free"
        raise InputError(what, where=str(folder), hint="make room, or name another cache folder")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    try:
        import fcntl
    except ImportError:  # no such locks here: two makers at once would meet in pip
        yield
        return
    with lock.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
