"""A file of counted expert loads: tokens by layer and expert, as JSON or CSV.

JSON: SGLang's ``expert_distribution_recorder`` keeps ``{"logical_count": [...]}`` of layers x experts, or with the
buffered steps in front, and reads the same back with ``--init-expert-location`` (sglang/srt/eplb/expert_location.py,
01fec5c); the bare lists do as well, and so does an object of layers, ``{"3": [...]}``. vLLM's EPLB keeps moe layers x
logical experts, with the window's steps in front (vllm/distributed/eplb/eplb_state.py, 50feac9). CSV: a line for each
layer and a column for each expert, with or without names above and a column ``layer``; or ``layer,expert,tokens``.

Layers without any token are left out: SGLang counts dense layers too.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from servewise.deployment.expert_load import Counted
from servewise.errors import InputError

LARGEST_FILE_BYTES = 64 * 2**20
MOST = 1e15  # tokens of an expert
MOST_EXPERTS = 65_536
HINT = 'tokens by layer and expert: {"logical_count": [[...], ...]}, or a CSV line for each layer'
TENSORS = 'write it as JSON: json.dump({"logical_count": torch.load(file)["logical_count"].tolist()}, out)'
LONG = ("layer", "expert", "tokens")
Rows = list[list[float]]


def load_counts(path: str | Path) -> Counted:
    """The counts of a file. Raises InputError for one that cannot be read so, with the place that is wrong."""
    where = str(path)
    text = _text(Path(path), where)
    is_json = Path(path).suffix == ".json" or text.lstrip()[:1] in ("{", "[")
    rows = _json_rows(text, where) if is_json else _csv_rows(text, where)
    kept = [row for row in rows if any(row)]
    if not kept:
        raise InputError("no expert got a token", where=where, hint=HINT)
    return Counted(tuple(map(tuple, kept)), Path(path).name)


def _text(path: Path, where: str) -> str:
    if path.suffix in (".pt", ".pth", ".safetensors"):
        raise InputError("tensors are not read", where=where, hint=TENSORS)
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE_BYTES + 1)
        if len(raw) > LARGEST_FILE_BYTES:
            raise InputError(f"larger than {LARGEST_FILE_BYTES // 2**20} MiB", where=where, hint="sum over its steps")
        return raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a name with a null byte
        reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise InputError(f"cannot be read: {reason}", where=where, hint=HINT) from error


def _json_rows(text: str, where: str) -> Rows:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=where, hint=HINT) from error
    if isinstance(found, dict):
        found = found["logical_count"] if "logical_count" in found else _by_layer(found, where)
    steps = found if _depth(found) == 3 else [found if _depth(found) == 2 else [found]]
    return _sum([_numbers(step, where) for step in steps], where)


def _by_layer(found: dict[str, Any], where: str) -> list[Any]:
    unknown = [name for name in found if not name.isdecimal()]
    if unknown or not found:
        named = f"not {', '.join(map(repr, unknown[:3]))}" if unknown else "and there is none"
        raise InputError(f"needs logical_count, or layers by number, {named}"[:200], where=where, hint=HINT)
    return list(found.values())


def _depth(found: Any) -> int:
    """How deep lists stand in each other, by the first of each."""
    return 1 + _depth(found[0]) if isinstance(found, list) and found else int(isinstance(found, list))


def _sum(steps: Sequence[Rows], where: str) -> Rows:
    """Layers x experts over all steps."""
    if len({len(rows) for rows in steps}) > 1:
        raise InputError("steps have unequal numbers of layers", where=where, hint=HINT)
    several = [[row for row in layer if row] for layer in zip(*steps, strict=True)]
    widths = {len(row) for layer in several for row in layer}
    if len(widths) > 1:
        few, many = min(widths), max(widths)
        raise InputError(f"layers have unequal numbers of experts, {few} to {many}", where=where, hint=HINT)
    return [[math.fsum(each) for each in zip(*layer, strict=True)] for layer in several]


def _numbers(rows: Any, where: str) -> Rows:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise InputError("no list of layers, each a list of tokens by expert", where=where, hint=HINT)
    return [[_tokens(each, f"{where}, layer {at}") for each in row] for at, row in enumerate(rows)]


def _csv_rows(text: str, where: str) -> Rows:
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if any(map(str.strip, line))]
    except csv.Error as error:
        raise InputError(f"not a CSV table: {error}", where=where, hint=HINT) from error
    if not lines:
        raise InputError("is empty", where=where, hint=HINT)
    names = [each.strip().lower() for each in lines[0]]
    if tuple(names) == LONG:
        return _long_rows(lines[1:], where)
    named = not all(map(_is_number, names))
    numbered = named and names[0] == "layer"
    cells = [line[1:] if numbered else line for line in (lines[1:] if named else lines)]
    return _sum([_numbers(cells, where)], where)


def _long_rows(lines: Sequence[Sequence[str]], where: str) -> Rows:
    """A line for each layer and expert; what is not named got nothing."""
    found: dict[tuple[int, int], float] = {}
    for number, line in enumerate(lines, 2):
        at = f"{where}, line {number}"
        if len(line) != len(LONG) or not all(each.strip().isdecimal() for each in line[:2]):
            raise InputError(f"is not {','.join(LONG)}", where=at, hint=HINT)
        key = int(line[0]), int(line[1])
        if max(key) > MOST_EXPERTS:
            raise InputError(f"layer and expert are at most {MOST_EXPERTS:,}", where=at, hint=HINT)
        found[key] = found.get(key, 0.0) + _tokens(line[2], at)
    layers, experts = sorted({layer for layer, _ in found}), 1 + max((expert for _, expert in found), default=-1)
    return [[found.get((layer, expert), 0.0) for expert in range(experts)] for layer in layers]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _tokens(given: Any, where: str) -> float:
    try:
        value = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not 0 <= value <= MOST:
        raise InputError(f"tokens must be a number from 0 to {MOST:g}, not {given!r}"[:200], where=where, hint=HINT)
    return value
