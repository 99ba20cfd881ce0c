"""What a task's result depends on beside the task: which servewise computes it, with which Python, on what machine."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path

from servewise.version import __version__

Build = Mapping[str, str]


@functools.cache
def this_build() -> Build:
    """Of this process: parts by name, plain strings, since another build must be able to read them."""
    import numpy as np

    return {
        "servewise": f"{__version__} ({source_digest(Path(__file__).parents[1])[:12]})",
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "NumPy": np.__version__,
        "machine": platform.machine(),
    }


def source_digest(root: Path) -> str:
    """SHA-256 of a package's files: a version's name stays the same while it is worked on."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return found.hexdigest()


def difference(ours: Build, theirs: Build) -> str | None:
    """In which part they differ first, None: in none.

    >>> difference({"Python": "3.11", "NumPy": "2.0"}, {"Python": "3.12", "NumPy": "2.0"})
    'Python 3.12, not 3.11'
    """
    parts = (name for name in ours if theirs.get(name) != ours[name])
    name = next(parts, None)
    return None if name is None else f"{name} {theirs.get(name, 'unknown')}, not {ours[name]}"
