"""Answers from files: the JSON documents that ``--json`` writes, read back with care."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NoReturn

from servewise.answer import Answer
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.report.reading import clean

LARGEST_BYTES = 64 * 2**20
DEEPEST = 40
_SCHEMA = re.compile(r"servewise\.([a-z][a-z-]{0,30})/(\d{1,6})")
_KEYS = {"schema", "conditions", "result", "caveats"}
_HINT = "write one with --json --output FILE"


def load_answer(path: str | Path) -> Answer:
    """The answer in the JSON document at ``path``.

    Raises InputError where the file cannot be read, is no JSON, or is no document of a known schema.
    """
    where = str(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(f"cannot be read ({reason or error})", where=where) from error
    if len(data) > LARGEST_BYTES:
        raise InputError(f"is larger than {LARGEST_BYTES // 2**20} MiB", where=where, hint="give an answer's document")
    return parse_answer(data, where=where)


def parse_answer(data: bytes | str, *, where: str = "document") -> Answer:
    """The answer in JSON text; ``where`` names it in errors."""
    return answer_from(_json(data, where), where=where)


def answer_from(document: object, *, where: str = "document") -> Answer:
    """The answer in a JSON value; every text in it comes out clean of control characters."""
    if not isinstance(document, Mapping):
        raise InputError("is not a JSON object", where=where, hint=_HINT)
    command = _command(document.get("schema"), where)
    unknown = sorted(set(document) - _KEYS)
    if unknown:
        raise InputError(
            f"unknown key {clean(str(unknown[0]))!r}", where=where, hint=f"known: {', '.join(sorted(_KEYS))}"
        )
    result = document.get("result")
    if not isinstance(result, Mapping):
        raise InputError("'result' is missing or not an object", where=where, hint=_HINT)
    return Answer(
        command,
        _conditions(document.get("conditions"), where),
        _cleaned(result, where, DEEPEST),
        _caveats(document.get("caveats", []), where),
    )


def _json(data: bytes | str, where: str) -> object:
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise InputError("is nested too deeply", where=where, hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", where=where, hint=_HINT) from error
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON ({error.msg}, line {error.lineno})", where=where, hint=_HINT) from error
    except ValueError as error:
        raise InputError(f"is not JSON ({str(error)[:80]})", where=where, hint=_HINT) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _command(schema: object, where: str) -> str:
    found = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if not found:
        shown = clean(schema)[:60] if isinstance(schema, str) else "no text"
        raise InputError(f"schema {shown!r} is not servewise.COMMAND/1", where=where, hint=_HINT)
    if found[2] != "1":
        raise InputError(f"schema version {found[2]} is newer than 1", where=where, hint="update servewise")
    return found[1]


def _conditions(found: object, where: str) -> Conditions:
    place = f"{where}: conditions"
    if not isinstance(found, Mapping):
        raise InputError("are missing", where=place, hint="no figure is drawn without its conditions")
    known = {field.name: field for field in fields(Conditions)}
    for name in found:
        if name not in known:
            raise InputError(f"unknown key {clean(str(name))!r}", where=place, hint=f"known: {', '.join(known)}")
    for name, field in known.items():
        if field.default is MISSING and name not in found:
            raise InputError(f"{name!r} is missing", where=place, hint="no figure is drawn without its conditions")
    return Conditions(**{name: _condition(name, value, place) for name, value in found.items()})


def _condition(name: str, value: object, where: str) -> Any:
    if name == "seeds":
        seeds = value if isinstance(value, list) else None
        if seeds is None or not all(isinstance(seed, int) and not isinstance(seed, bool) for seed in seeds):
            raise InputError("'seeds' is not a list of whole numbers", where=where)
        return tuple(seeds)
    if not isinstance(value, str):
        raise InputError(f"{name!r} is not text", where=where)
    return clean(value)


def _caveats(found: object, where: str) -> tuple[Caveat, ...]:
    if not isinstance(found, list):
        raise InputError("'caveats' is not a list", where=where)
    return tuple(_caveat(item, f"{where}: caveats[{index}]") for index, item in enumerate(found))


def _caveat(found: object, where: str) -> Caveat:
    parts = [found.get(key) for key in ("code", "message", "cure")] if isinstance(found, Mapping) else []
    texts = [clean(part) for part in parts if isinstance(part, str)]
    if len(texts) != 3:
        raise InputError("is not {code, message, cure}", where=where)
    return Caveat(*texts)


def _cleaned(value: Any, where: str, depth: int) -> Any:
    if depth == 0:
        raise InputError(f"is nested more than {DEEPEST} deep", where=where, hint=_HINT)
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _cleaned(item, where, depth - 1) for key, item in value.items()}
    return [_cleaned(item, where, depth - 1) for item in value] if isinstance(value, list) else value
