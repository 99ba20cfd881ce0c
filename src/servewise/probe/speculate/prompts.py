"""Prompts as users have them: a text file, a prompt a line, or JSON lines of ``prompt`` or ``messages``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from servewise.engine.checkpoint import Tokenizer
from servewise.errors import InputError

MAX_FILE_BYTES = 2**26
HINT = 'a prompt a line, or JSON lines of {"prompt": ...} or {"messages": [{"role", "content"}, ...]}'
Prompt = str | list[dict[str, str]]


def read_prompts(path: Path) -> list[Prompt]:
    """The prompts in ``path``, empty lines left out; InputError with the line for what cannot be read."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"is larger than {MAX_FILE_BYTES:,} bytes", where=str(path), hint="cut it down")
        lines = path.read_text("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(path), hint=HINT) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path)) from None
    numbered = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not numbered:
        raise InputError("holds no prompt", where=str(path), hint=HINT)
    if not numbered[0][1].startswith("{"):
        return [line for _, line in numbered]
    return [_from_json(line, f"{path}: line {number}") for number, line in numbered]


def encode_prompts(prompts: Iterable[Prompt], tokenizer: Tokenizer) -> list[tuple[int, ...]]:
    """Token ids: texts with the begin token that the model is used to, conversations in the model's template."""
    return [tuple(tokenizer.prompt(each) if isinstance(each, str) else tokenizer.chat(each)) for each in prompts]


def refuse_long(tokens: Sequence[tuple[int, ...]], context_tokens: int, where: str) -> None:
    """Raises InputError for a prompt that leaves no room for a reply, or holds nothing."""
    for number, each in enumerate(tokens, start=1):
        if not 0 < len(each) < context_tokens:
            what = f"prompt {number} has {len(each)} tokens, where the model's context is {context_tokens}"
            raise InputError(what, where=where, hint="cut it down, or leave it out")


def _from_json(line: str, where: str) -> Prompt:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("is no JSON", where=where, hint=HINT) from None
    if not isinstance(row, dict) or ("prompt" in row) == ("messages" in row):
        raise InputError("must have either prompt or messages", where=where, hint=HINT)
    if "messages" in row:
        return [_message(each, where) for each in _messages(row["messages"], where)]
    if not isinstance(row["prompt"], str) or not row["prompt"]:
        raise InputError("prompt must be text, not empty", where=where, hint=HINT)
    return str(row["prompt"])


def _messages(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        raise InputError("messages must be a list, not empty", where=where, hint=HINT)
    return value


def _message(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("role", "content")):
        raise InputError("each message must have a role and a content, both text", where=where, hint=HINT)
    return {"role": value["role"], "content": value["content"]}
