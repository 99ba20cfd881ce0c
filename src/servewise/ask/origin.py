"""The files that an answer was made from, for whoever keeps its runs or results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from servewise.records.origin import Origin, Source, source_at
from servewise.records.run_directory import RunRecord
from servewise.workload.load import files_of

WEIGHTS = ".gguf"  # only its header is read, and the rest takes minutes to hash


def origin_of(command: str, workload: object, **given: object) -> Origin:
    """``command`` with the files of ``workload`` and of what else is ``given`` by name (``estimator=...``).

    What is no file's path (a name that ships, an object, None) leaves nothing. InputError for a file that went away.
    """
    paths = files_of(workload) if isinstance(workload, str) else ()
    loads = tuple(source_at(of, path) for of, path in zip(("workload", "trace"), paths, strict=False))
    others = tuple(found for of, value in given.items() if (found := _source(of, value)) is not None)
    return Origin(command=command, sources=loads + others)


def made_by(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """What made these kept runs, each command with its files once; of results of other clients nothing is known."""
    found: dict[Origin, None] = {Origin(command=each.command, sources=each.sources): None for each in records}
    return [
        {"command": each.command, "sources": [source.to_json() for source in each.sources]}
        for each in found
        if each.command
    ]


def _source(of: str, value: object) -> Source | None:
    if not isinstance(value, (str, Path)):
        return None
    path = Path(value)
    try:
        path = path / "config.json" if path.is_dir() else path
        is_read = path.is_file() and path.suffix.lower() != WEIGHTS
    except (OSError, ValueError):  # a name that no file system can hold
        return None
    return source_at(of, path) if is_read else None
