"""The two readers, CSV and JSONL: lines in, rows out, one at a time."""

from __future__ import annotations

import csv
import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from servewise.errors import InputError
from servewise.workload import checks
from servewise.workload.traces.layouts import CSV_LAYOUTS, JSONL_LAYOUTS, Layout, number, recognised

ONE_NAME = "a hash stands for all tokens up to its block's end, so those of a prompt differ"
CHARACTERS_PER_TOKEN = 4  # where a prompt is text; a tokenizer's own cut would need the tokenizer


class Row(NamedTuple):
    """One request of a trace; ``arrival_s`` by the trace's own clock."""

    line: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    blocks: Sequence[int]
    from_text: bool = False


class Rows(NamedTuple):
    """A recognised trace: its layout, and its rows as a stream."""

    layout: Layout
    rows: Iterator[Row]


def read(lines: Iterator[str], where: str, block_tokens: int | None = None) -> Rows:
    """The rows of a trace whose layout is recognised by its first line; ``block_tokens`` replaces the layout's own."""
    first, start = "", 0
    for first in lines:
        start += 1
        if first.strip():
            break
    if not first.strip():
        raise InputError("is empty", where=where, hint="give a CSV or JSONL trace")
    if first.lstrip().startswith("{"):
        layout = recognised(_object(first, f"{where}:{start}"), JSONL_LAYOUTS, where)
        blocks = layout.block_tokens if block_tokens is None else checks.tokens(block_tokens, "the tokens per block")
        return Rows(layout, _jsonl(chain((first,), lines), layout, where, start, blocks or 1))
    header = _fields(first, f"{where}:{start}")
    layout = recognised(header, CSV_LAYOUTS, where)
    return Rows(layout, _csv(lines, layout, [name.strip().lower() for name in header], where, start))


def _csv(lines: Iterator[str], layout: Layout, header: list[str], where: str, start: int) -> Iterator[Row]:
    columns = [header.index(name.lower()) for name in (layout.arrival, layout.prompt, layout.output)]
    reader = csv.reader(lines)
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise InputError(f"is no CSV ({error})", where=f"{where}:{start + reader.line_num}") from error
        if fields is None:
            return
        if fields:
            line = start + reader.line_num
            if len(fields) <= max(columns):
                raise InputError(f"the row has {len(fields)} of {len(header)} columns", where=f"{where}:{line}")
            yield _row(layout, line, where, [fields[column] for column in columns], ())


def _jsonl(lines: Iterator[str], layout: Layout, where: str, start: int, block_tokens: int) -> Iterator[Row]:
    for line, text in enumerate(lines, start):
        if not text.strip():
            continue
        here = f"{where}:{line}"
        found = _object(text, here)
        missing = [name for name in (layout.arrival, layout.prompt, layout.output) if name not in found]
        if missing:
            raise InputError(f"the row lacks {', '.join(missing)}", where=here)
        values = [found[name] for name in (layout.arrival, layout.prompt, layout.output)]
        row = _row(layout, line, where, values, ())
        given = found.get(layout.blocks) if layout.blocks else None
        if given is not None:
            most = -(-row.prompt_tokens // block_tokens)
            ids = _runs(given, most, here) if layout.runs else _ids(given, here, layout.blocks or "")
            if len(ids) > most:
                raise _too_many(len(ids), row, block_tokens, here)
            if len(set(ids)) < len(ids):
                raise InputError(f"{layout.blocks} names one block twice", where=here, hint=ONE_NAME)
            yield row._replace(blocks=ids)
        elif layout.name == "generic" and found.get("prompt") is not None:
            yield _with_prompt(row, found["prompt"], block_tokens, here)
        else:
            yield row


def _row(layout: Layout, line: int, where: str, values: list[Any], blocks: Sequence[int]) -> Row:
    here = f"{where}:{line}"
    try:
        arrival = number(layout.seconds(values[0] if isinstance(values[0], str) else number(values[0])))
    except (ValueError, OverflowError, TypeError) as error:
        what = f"{layout.arrival} is no time, but {checks.shown(values[0])}"
        raise InputError(what, where=here, hint="every row needs its arrival") from error
    prompt = _tokens(values[1], layout.prompt, here, least=1)
    output = _tokens(values[2], layout.output, here, least=0 if layout.zero_output else 1)
    return Row(line, arrival, prompt, output, blocks)


def _tokens(value: object, what: str, here: str, least: int) -> int:
    try:
        found = number(value)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{what} must be a whole number, not {checks.shown(value)}", where=here) from error
    if found != int(found) or not least <= found <= checks.MAX_TOKENS:
        limits = f"from {least} to {checks.MAX_TOKENS:,}"
        raise InputError(f"{what} must be a whole number {limits}, not {checks.shown(value)}", where=here)
    return int(found)


def _object(text: str, here: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("the line is no JSON object", where=here, hint="one object a line") from error
    if not isinstance(found, dict):
        raise InputError("the line is no JSON object", where=here, hint="one object a line")
    return found


def _fields(text: str, here: str) -> list[str]:
    try:
        return next(csv.reader([text]))
    except csv.Error as error:
        raise InputError(f"is no CSV ({error})", where=here) from error


def _too_many(blocks: int, row: Row, block_tokens: int, here: str) -> InputError:
    what = f"{blocks} blocks of {block_tokens} tokens for a prompt of {row.prompt_tokens}"
    return InputError(what, where=here, hint="give the trace's tokens per block")


def _ids(given: object, here: str, what: str) -> Sequence[int]:
    if not isinstance(given, list):
        raise InputError(f"{what} must be a list of block ids", where=here)
    if all(isinstance(each, str) for each in given):
        return [_digest(0, each.encode("utf-8", "surrogatepass")) for each in given]
    try:
        return array("q", given)
    except (TypeError, OverflowError) as error:
        raise InputError(f"{what} must hold whole numbers of 64 bits, or texts", where=here) from error


def _runs(given: object, most: int, here: str) -> Sequence[int]:
    """The ids of [first, last] pairs, both included, ``most`` in all."""
    pairs = given if isinstance(given, list) else [None]
    found = array("q")
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(end) is int for end in pair)):
            raise InputError("runs of blocks must be pairs [first, last]", where=here)
        if not 0 <= pair[0] <= pair[1] < 2**62 or len(found) + pair[1] - pair[0] >= most:
            what = f"{checks.shown(pair)} is no run of blocks, or more than the {most} of its prompt"
            raise InputError(what, where=here)
        found.extend(range(pair[0], pair[1] + 1))
    return found


def _with_prompt(row: Row, prompt: object, block_tokens: int, here: str) -> Row:
    """Chained hashes of the prompt's whole blocks: exact where it is token ids, by 4 characters a token where text."""
    if isinstance(prompt, str):
        size = block_tokens * CHARACTERS_PER_TOKEN
        pieces = [prompt[at : at + size].encode("utf-8", "surrogatepass") for at in range(0, len(prompt), size)]
        whole = min(len(prompt) // size, row.prompt_tokens // block_tokens)
        return row._replace(blocks=_chained(pieces[:whole]), from_text=True)
    ids = _ids(prompt, here, "prompt")
    if len(ids) != row.prompt_tokens:
        raise InputError(f"prompt holds {len(ids)} token ids, prompt_tokens says {row.prompt_tokens}", where=here)
    whole = len(ids) // block_tokens
    blocks = (ids[at * block_tokens : (at + 1) * block_tokens] for at in range(whole))
    return row._replace(blocks=_chained([array("q", block).tobytes() for block in blocks]))


def _chained(pieces: list[bytes]) -> list[int]:
    found, last = [], 0
    for piece in pieces:
        last = _digest(last, piece)
        found.append(last)
    return found


def _digest(before: int, piece: bytes) -> int:
    """A 63-bit name of ``piece`` after ``before``."""
    raw = hashlib.blake2b(piece, digest_size=8, key=before.to_bytes(8, "little")).digest()
    return int.from_bytes(raw, "little") >> 1
