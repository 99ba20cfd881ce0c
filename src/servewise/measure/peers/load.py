"""A result file of another client, whichever it is."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from servewise.errors import InputError
from servewise.measure.peers import aiperf, engine_times, guidellm, llama_benchy, vllm
from servewise.measure.peers.found import PeerRun

LARGEST_BYTES = 2**29
KNOWN = (
    "vLLM bench serve, GuideLLM, AIPerf (profile_export.jsonl or profile_export_aiperf.json), llama-benchy, "
    "requests with the times of vLLM's engine (JSONL or CSV)"
)


def read_results(path: Path) -> tuple[PeerRun, ...]:
    """The runs in the file at ``path``; InputError for one that is none of a client that is known."""
    return runs_in(_documents(path), str(path))


def runs_in(found: list[Any], where: str) -> tuple[PeerRun, ...]:
    """The runs in the JSON documents ``found`` of a file called ``where``; InputError as for ``read_results``."""
    first = found[0] if found else None
    if isinstance(first, dict) and str(first.get("schema", "")).startswith("servewise."):
        raise InputError("is an answer, no run", where=where, hint="name the run directory that it was made of")
    for known, read in _READERS:
        if found and all(known(each) for each in found):
            return read(found, where)
    raise InputError("is no result of a client that is known", where=where, hint=f"known: {KNOWN}")


def _only(read: Callable[[Any, str], tuple[PeerRun, ...]]) -> Callable[[list[Any], str], tuple[PeerRun, ...]]:
    """Of a client that writes one document a file; several are read one after the other."""
    return lambda found, where: tuple(run for each in found for run in read(each, where))


_READERS: tuple[tuple[Callable[[object], bool], Callable[[list[Any], str], tuple[PeerRun, ...]]], ...] = (
    (vllm.is_vllm, vllm.read),
    (guidellm.is_guidellm, _only(guidellm.read)),
    (llama_benchy.is_llama_benchy, _only(llama_benchy.read)),
    (aiperf.is_record, aiperf.read_records),
    (aiperf.is_summary, _only(aiperf.read_summary)),
    (engine_times.is_request, engine_times.read),
)


def _documents(path: Path) -> list[Any]:
    """The JSON documents of a file: one, or one a line."""
    where = str(path)
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise InputError("is over 512 MB", where=where, hint="a smaller result")
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=where) from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", where=where, hint=f"known results: {KNOWN}") from error
    if path.suffix == ".csv":
        return _table(text, where)
    try:
        return [json.loads(text)]
    except RecursionError as error:
        raise InputError("is nested too deeply", where=where) from error
    except ValueError:
        return _lines(text, where)


def _table(text: str, where: str) -> list[Any]:
    """The rows of a CSV file, numbers as numbers."""
    try:
        return [{name: _value(value) for name, value in row.items()} for row in csv.DictReader(text.splitlines())]
    except csv.Error as error:
        raise InputError(f"is no CSV ({error})", where=where, hint=f"known results: {KNOWN}") from error


def _value(text: object) -> object:
    try:
        return float(text)  # type: ignore[arg-type]  # what is no text is no number either
    except (TypeError, ValueError):
        return text


def _lines(text: str, where: str) -> list[Any]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise InputError("is no JSON", where=f"{where}:{number}", hint=f"known results: {KNOWN}") from error
    return found
