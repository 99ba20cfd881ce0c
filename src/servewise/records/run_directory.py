"""The run directory: ``run.json``, ``requests.parquet`` and, where steps are known, ``steps.parquet``.

``run.json`` holds the length and SHA-256 of each other file; they are compared before the file is parsed. A run is
written as it goes (``open_run``): until its end, and for ever where it was killed, ``run.json`` says that it is
partial, and the rows of a measured one are read from its journal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.records.claim import under_way
from servewise.records.columns import RequestColumns, StepColumns
from servewise.records.journal import Journalled, read_journal
from servewise.records.origin import Source, sources_from
from servewise.records.placing import placed
from servewise.records.tables import (
    requests_from_parquet,
    requests_to_parquet,
    steps_from_parquet,
    steps_to_parquet,
)
from servewise.records.text import text_of

SCHEMA = "servewise.run/1"
HEADER, REQUESTS, STEPS = "run.json", "requests.parquet", "steps.parquet"
PARTIAL, NOWHERE = "requests.partial.jsonl", "nowhere"  # where the rows of a partial run are
CUT_OFF = "partial-run"
MOST_NAMED = 5  # damaged lines
MAX_HEADER_BYTES = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as it stands in a directory.

    ``kind`` is ``simulated`` or ``measured``; ``slots`` the sequences that could run at once (None: not known);
    ``versions`` name the software (servewise, the engine); ``command`` made the run, of the files ``sources``;
    ``details`` holds what else its maker knows (plain JSON). ``steps`` is None in a measured run.
    """

    kind: str
    conditions: Conditions
    requests: RequestColumns
    steps: StepColumns | None = None
    slots: int | None = None
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    sources: tuple[Source, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def write_run(directory: Path, run: RunRecord) -> None:
    """Write ``run`` as ``directory``, which must not exist or be empty; nothing is left behind if that fails."""
    files = {REQUESTS: requests_to_parquet(run.requests)}
    if run.steps is not None:
        files[STEPS] = steps_to_parquet(run.steps)
    placed(directory, files | {HEADER: header_bytes(run, sums_of(files))}).release()


def read_run(directory: Path) -> RunRecord:
    """The run in ``directory``; InputError for one that is missing, damaged, or of another schema."""
    header = read_header(directory / HEADER)
    files = _table(header, "files", str(directory / HEADER))
    requests, partial = _requests(directory, header, files)
    known = STEPS in files
    steps = steps_from_parquet(_verified(directory / STEPS, files), str(directory / STEPS)) if known else None
    found = _record(directory, header)
    return replace(found, requests=requests, steps=steps, caveats=(*found.caveats, *partial))


def read_about(directory: Path) -> tuple[RunRecord, Mapping[str, Any] | None]:
    """The run in ``directory`` without its rows, and what is said of the files that hold them; None: it is partial."""
    header = read_header(directory / HEADER)
    files = _table(header, "files", str(directory / HEADER))
    return _record(directory, header), None if "partial" in header else files


def _record(directory: Path, header: Mapping[str, Any]) -> RunRecord:
    """What ``header`` says of the run; no rows."""
    where = str(directory / HEADER)
    return RunRecord(
        kind=_of(header, "kind", str, where),
        conditions=conditions_from(_table(header, "conditions", where), where),
        requests=RequestColumns(),
        slots=_optional_whole(header, "slots", where),
        seed=_optional_whole(header, "seed", where),
        versions={str(name): str(version) for name, version in _table(header, "versions", where).items()},
        command=_of(header, "command", str, where),
        sources=sources_from(header.get("sources"), where),
        caveats=tuple(_caveat(each, where) for each in _of(header, "caveats", list, where)),
        details=_table(header, "details", where),
    )


def read_beside(directory: Path, name: str) -> bytes:
    """The file ``name`` that was kept with the run; InputError where it is not there, or not what was written."""
    header = read_header(directory / HEADER)
    return _verified(directory / name, _table(header, "files", str(directory / HEADER)))


def _requests(
    directory: Path, header: Mapping[str, Any], files: Mapping[str, Any]
) -> tuple[RequestColumns, tuple[Caveat, ...]]:
    """The rows, and the caveat of a run that never came to its end."""
    if "partial" not in header:
        return requests_from_parquet(_verified(directory / REQUESTS, files), str(directory / REQUESTS)), ()
    if header["partial"] not in (PARTIAL, NOWHERE):
        raise InputError(f"partial must be {PARTIAL!r}", where=str(directory / HEADER))
    journal = directory / PARTIAL
    begun = header["partial"] == PARTIAL and journal.exists()  # killed between the header and the journal's making
    found = read_journal(journal) if begun else Journalled()
    return found.requests, _partial(directory, header, found)


def _partial(directory: Path, header: Mapping[str, Any], found: Journalled) -> tuple[Caveat, ...]:
    """That the run is not whole, and what of it is not there."""
    goes_on, rows = under_way(directory), len(found.requests)
    state = "partial: the run goes on" if goes_on else "partial: the run was ended from outside"
    if header["partial"] == NOWHERE:
        message = f"{state}: its requests are kept {'when it ends' if goes_on else 'at the end, which never came'}"
        return (Caveat(CUT_OFF, message, "run its command again: the seed gives the same requests"),)
    torn = ", and of one more the end of its line is lost" * found.torn
    message = f"{state}: {rows:,} requests had ended by then{torn}; those under way are not known"
    cure = "wait for its end" if goes_on else "measure it again for the whole run (bench --resume)"
    cut = Caveat(CUT_OFF, message, cure)
    return (cut, *_damage(directory, found))


def _damage(directory: Path, found: Journalled) -> tuple[Caveat, ...]:
    """The lines of a journal that are not what was written."""
    if not found.damaged and not found.lost:
        return ()
    named = ", ".join(map(str, found.damaged[:MOST_NAMED])) + ", ..." * (len(found.damaged) > MOST_NAMED)
    lines = f"lines {named} are not what was written" if found.damaged else "lines are missing"
    lost = max(found.lost, len(found.damaged))
    message = f"{directory / PARTIAL} is damaged: {lines}; at least {lost:,} requests that ended are left out"
    return (Caveat("damaged-journal", message, "look at the disk, and measure again"),)


def sums_of(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """What ``run.json`` says of the files beside it."""
    return {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}


def header_bytes(run: RunRecord, sums: Mapping[str, Mapping[str, Any]], partial: str | None = None) -> bytes:
    """``run.json`` of ``run``, whose other files have these ``sums``; ``partial``: where the rows are until its end."""
    return text_of(_header(run, sums) | ({} if partial is None else {"partial": partial}))


def _header(run: RunRecord, sums: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": run.kind,
        "conditions": run.conditions.to_json(),
        "seed": run.seed,
        "slots": run.slots,
        "versions": dict(run.versions),
        "command": run.command,
        "sources": [each.to_json() for each in run.sources],
        "caveats": [each.to_json() for each in run.caveats],
        "details": dict(run.details),
        "files": dict(sums),
    }


def read_header(path: Path) -> dict[str, Any]:
    """The header at ``path`` as it stands; InputError for one that is missing, too large, no JSON, or another's."""
    hint = "a run directory holds run.json and requests.parquet"
    try:
        if path.stat().st_size > MAX_HEADER_BYTES:
            raise InputError("is over 16 MB: no run's header is", where=str(path))
        header = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path), hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise InputError("is no JSON", where=str(path), hint=hint) from error
    schema = header.get("schema") if isinstance(header, dict) else None
    if schema != SCHEMA:
        what = f"has the schema {str(schema)[:60]!r}, where {SCHEMA!r} is read"
        raise InputError(what, where=str(path), hint="make the run again with this version")
    return dict(header)


def _verified(path: Path, files: Mapping[str, Any]) -> bytes:
    """The bytes of ``path``, if they are those that the header was written with."""
    entry = files.get(path.name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from error
    given = entry.get("sha256") if isinstance(entry, dict) else None
    if given != hashlib.sha256(data).hexdigest():
        what = "is damaged or truncated: it is not the file that run.json describes"
        raise InputError(what, where=str(path), hint="copy the run again, or make it again")
    return data


def _of(header: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    value = header.get(key)
    if not isinstance(value, kind):
        raise InputError(f"{key} must be a {kind.__name__}", where=where)
    return value


def _table(header: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    found: dict[str, Any] = _of(header, key, dict, where)
    return found


def _optional_whole(header: Mapping[str, Any], key: str, where: str) -> int | None:
    value = header.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InputError(f"{key} must be a whole number or null", where=where)
    return value


def _caveat(value: Any, where: str) -> Caveat:
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("code", "message", "cure")):
        raise InputError("a caveat must have code, message and cure", where=where)
    return Caveat(value["code"], value["message"], value["cure"])


def conditions_from(value: Mapping[str, Any], where: str) -> Conditions:
    """What a file holds as conditions; InputError where they are none."""
    names = {each.name for each in fields(Conditions)}
    missing = [name for name in ("hardware", "load", "lengths", "precision") if not isinstance(value.get(name), str)]
    unknown = sorted(set(value) - names)
    if missing or unknown:
        what = f"conditions lack {', '.join(missing)}" if missing else f"unknown condition {unknown[0][:40]!r}"
        raise InputError(what, where=where)
    if not all(isinstance(each, str) for name, each in value.items() if name != "seeds"):
        raise InputError("conditions must be texts", where=where)
    seeds = value.get("seeds")
    if seeds is not None and not (isinstance(seeds, list) and all(type(each) is int for each in seeds)):
        raise InputError("the seeds of conditions must be whole numbers", where=where)
    return Conditions(**{**value, "seeds": None if seeds is None else tuple(seeds)})
