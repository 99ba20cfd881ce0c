"""WORKLOAD as a user gives it: a preset's name, a workload file (TOML) or a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from servewise.errors import InputError, UnknownName
from servewise.workload import checks
from servewise.workload.conversations import Conversations
from servewise.workload.synthetic import ClosedLoop
from servewise.workload.traces.load import load_trace
from servewise.workload.traces.trace import Trace
from servewise.workload.workload_file import Described, read_workload, traces_of

DATA = Path(__file__).parent / "data"


def presets() -> Mapping[str, Path]:
    """The workloads that ship with the package: name to file (their sources stand in the files and in SOURCES.md)."""
    files = sorted(path for path in DATA.iterdir() if path.suffix in (".toml", ".gz"))
    return {path.name.split(".")[0]: path for path in files}


def load_workload(
    name_or_path: str,
    *,
    rate_per_s: float | None = None,
    requests: int | None = None,
    sort: bool = False,
    block_tokens: int | None = None,
) -> Described:
    """The workload of that preset, workload file (``.toml``) or trace, at another rate or length if wanted.

    ``rate_per_s`` scales arrivals, ``requests`` cuts or repeats, ``sort`` and ``block_tokens`` are for trace files.
    Raises UnknownName with the nearest presets, InputError for a file that is wrong.
    """
    found = _found(name_or_path, sort, block_tokens)
    if requests is not None:
        found = with_requests(found, requests)
    if rate_per_s is None:
        return found
    if isinstance(found, ClosedLoop) or (isinstance(found, Conversations) and found.users is not None):
        hint = "change its concurrency, or use open arrivals"
        raise InputError("a closed loop has no arrival rate", where=name_or_path, hint=hint)
    return found.at_rate(rate_per_s)


def files_of(name_or_path: str) -> tuple[Path, ...]:
    """The files that ``load_workload`` reads for it: none for a preset; a workload file may name a trace beside it."""
    path = Path(name_or_path)
    if name_or_path in presets():
        return ()
    return (path, *traces_of(path)) if path.suffix == ".toml" else (path,)


def with_requests(workload: Described, count: int) -> Described:
    """The same workload with ``count`` requests in all, whatever its length was."""
    count = checks.tokens(count, "the number of requests")
    if isinstance(workload, Trace):
        return workload.tiled(count)
    if isinstance(workload, ClosedLoop):
        return replace(workload, requests=count)
    if isinstance(workload, Conversations):
        return replace(workload, count=count)
    return replace(workload, count=count, duration_s=None)


def _found(name_or_path: str, sort: bool, block_tokens: int | None) -> Described:
    preset = presets().get(name_or_path)
    path = preset or Path(name_or_path)
    if preset is None and not _is_file(path):
        if path.suffix or len(path.parts) > 1:
            raise InputError("no such file", where=name_or_path[:200], hint=f"presets are {', '.join(presets())}")
        raise UnknownName("workload", name_or_path[:80], presets(), hint=f"one of {', '.join(presets())}, or a file")
    if path.suffix != ".toml":
        return load_trace(path, sort=sort, block_tokens=block_tokens, name=name_or_path if preset else None)
    if sort or block_tokens is not None:
        raise InputError("sorting and tokens per block are set in the workload file", where=str(path))
    return read_workload(path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file system can hold
        return False
