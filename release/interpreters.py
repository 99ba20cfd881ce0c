"""The interpreters of this machine, found by name: none of its paths stands in the tree.

A version is looked for as ``python3.N`` on PATH, then among pyenv's (PYENV_ROOT, or as it says itself), then where uv
keeps its own. What does not answer with the version asked for is none: a pyenv shim answers only for some folders.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def interpreter(wanted: str) -> Path | None:
    """An interpreter of version ``wanted`` ("3.12"), or the one at that path; None where there is none."""
    return next((each for each in _candidates(wanted) if "/" in wanted or version_of(each) == wanted), None)


def _candidates(wanted: str) -> Iterator[Path]:
    if "/" in wanted:
        yield from (each for each in (Path(wanted),) if version_of(each))
        return
    name = f"python{wanted}"
    yield from (Path(folder) / name for folder in os.get_exec_path() if (Path(folder) / name).exists())
    for folder in (_said("pyenv", "root"), os.environ.get("PYENV_ROOT", "")):
        yield from sorted(Path(folder).glob(f"versions/{wanted}.*/bin/{name}"), reverse=True) if folder else ()
    kept = _said(sys.executable, "-m", "uv", "python", "find", "--no-python-downloads", "--system", wanted)
    yield from (Path(each) for each in (kept,) if each)


def version_of(python: Path) -> str | None:
    """The version that ``python`` answers with, as "3.12"; None where it does not answer."""
    said = _said(str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    return said or None


def _said(*words: str) -> str:
    if not shutil.which(words[0]):
        return ""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
