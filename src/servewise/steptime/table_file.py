"""A user's own file of measured steps: CSV, or JSON as ``servewise steptime --json`` writes it."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from servewise.errors import InputError

NEEDED = ("batch", "context_tokens", "step_s")
# What ``steptime`` prints beside them; read past, so that its own output is a table.
BESIDE = (
    "phase",
    "compute_s",
    "memory_s",
    "overhead_s",
    "communication_s",
    "floor_s",
    "tokens_per_s",
    "bound",
)
PHASES = ("decode", "prefill")
LARGEST_FILE_BYTES = 16 * 2**20
HINT = "a table needs the columns batch, context_tokens and step_s [s], and may have phase (decode, prefill)"


class MeasuredStep(NamedTuple):
    """One measured step: ``batch`` sequences at ``context_tokens`` each (prefill: whole prompts of that length)."""

    phase: str
    batch: int
    context_tokens: int
    step_s: float


def load_table(path: str | Path) -> tuple[MeasuredStep, ...]:
    """The measured steps of a file, in order of phase, batch and context.

    Raises InputError for a file that cannot be read as a table, with the row that is wrong.
    """
    where = str(path)
    text = _text(Path(path), where)
    rows = _json_rows(text, where) if text.lstrip()[:1] in ("{", "[") else _csv_rows(text, where)
    found: dict[tuple[str, int, int], MeasuredStep] = {}
    for number, row in enumerate(rows, 1):
        step = _step(row, f"{where}, row {number}")
        if step[:3] in found:
            raise InputError(f"{step.phase} of batch {step.batch} at {step.context_tokens} comes twice", where=where)
        found[step[:3]] = step
    if not any(step.phase == "decode" for step in found.values()):
        raise InputError("no decode step in the table", where=where, hint=HINT)
    return tuple(found[key] for key in sorted(found))


def _text(path: Path, where: str) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE_BYTES + 1)  # a device has no size to ask for
        if len(raw) > LARGEST_FILE_BYTES:
            raise InputError(f"larger than {LARGEST_FILE_BYTES // 2**20} MiB", where=where, hint=HINT)
        return raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a name with a null byte
        reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise InputError(f"cannot be read: {reason}", where=where, hint=HINT) from error


def _csv_rows(text: str, where: str) -> list[Mapping[str, Any]]:
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, restkey="")
        rows: list[Mapping[str, Any]] = list(reader)
    except csv.Error as error:
        raise InputError(f"not a CSV table: {error}", where=where, hint=HINT) from error
    _check_names(reader.fieldnames or (), where)
    return rows


def _json_rows(text: str, where: str) -> list[Mapping[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=where, hint=HINT) from error
    answer = document.get("result", document) if isinstance(document, dict) else {"rows": document}
    rows = answer.get("rows") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("no list of rows in the JSON", where=where, hint=HINT)
    for row in rows:
        _check_names(row, where)
    return [{"phase": answer.get("phase"), **row} for row in rows]


def _check_names(names: Iterable[str], where: str) -> None:
    given = set(names)
    missing, unknown = [n for n in NEEDED if n not in given], sorted(given - {*NEEDED, *BESIDE})
    if missing:
        raise InputError(f"no column {', '.join(missing)}", where=where, hint=HINT)
    if unknown:
        raise InputError(f"unknown column {', '.join(map(repr, unknown[:3]))}", where=where, hint=HINT)


def _step(row: Mapping[str, Any], where: str) -> MeasuredStep:
    phase = row.get("phase") or "decode"
    if phase not in PHASES:
        raise InputError(f"phase must be decode or prefill, not {phase!r}", where=where)
    if any(row.get(name) is None for name in NEEDED) or "" in row:
        raise InputError("a cell too few or too many", where=where, hint=HINT)
    batch, context = (int(_number(row, name, where, whole=True)) for name in ("batch", "context_tokens"))
    return MeasuredStep(str(phase), batch, context, _number(row, "step_s", where, whole=False))


def _number(row: Mapping[str, Any], name: str, where: str, *, whole: bool) -> float:
    given = row[name]
    try:
        value = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    most = 1e12 if whole else 1e6
    if not 0 < value <= most or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        raise InputError(f"{name} must be {kind} above 0, at most {most:g}, not {given!r}"[:200], where=where)
    return value
