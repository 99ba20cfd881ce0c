"""A user's own prompts: a text file with one in each line, or JSONL with ``prompt`` or ``messages`` in each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servewise.errors import InputError, UnknownName
from servewise.measure.ask import Ask
from servewise.measure.load.asks import asked
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import Content, Prompt
from servewise.workload import checks
from servewise.workload.request import Request
from servewise.workload.traces.lines import opened

KEYS = ("prompt", "messages", "max_tokens")
MOST_CHARACTERS = 2**30


@dataclass(frozen=True, slots=True)
class FilePrompt:
    """One prompt of a file; ``max_tokens`` where it sets its own."""

    prompt: Prompt
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class FileAsks:
    """Asks from ``prompts`` in their order, from the first again after the last.

    The answer's length is the prompt's own ``max_tokens``, else the request's.
    """

    prompts: tuple[FilePrompt, ...]
    form: Form

    def __post_init__(self) -> None:
        for each in self.prompts:
            self.form.check(each.prompt)

    def __call__(self, request: Request) -> Ask:
        """The ask of ``request``."""
        found = self.prompts[request.serial % len(self.prompts)]
        return asked(request.serial, found.prompt, self.form, found.max_tokens or request.output_tokens)


def read_prompts(path: Path | str) -> tuple[FilePrompt, ...]:
    """The prompts in ``path`` (plain or gzipped); InputError names the line that is wrong. Empty lines are passed over.

    It is JSONL where its first line begins with a brace, else text.
    """
    where = str(path)
    with opened(Path(path)) as lines:
        found = tuple(_read(lines, where))
    if not found:
        raise InputError("holds no prompt", where=where, hint="give text lines, or JSONL with prompt or messages")
    return found


def _read(lines: Iterator[str], where: str) -> Iterator[FilePrompt]:
    as_json, characters = None, 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        characters += len(text)
        if characters > MOST_CHARACTERS:
            raise InputError("holds over a billion characters of prompts", where=where, hint="give fewer")
        as_json = text.startswith("{") if as_json is None else as_json
        yield _parsed(text, f"{where}:{number}") if as_json else FilePrompt(Prompt(text))


def _parsed(text: str, here: str) -> FilePrompt:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("the line is no JSON object", where=here, hint="one object a line") from error
    if not isinstance(fields, dict):
        raise InputError("the line is no JSON object", where=here, hint="one object a line")
    for name in fields:
        if name not in KEYS:
            raise UnknownName("key", name[:40], KEYS, where=here, hint=f"the keys are {', '.join(KEYS)}")
    limit = fields.get("max_tokens")
    limit = None if limit is None else checks.tokens(limit, "max_tokens", where=here)
    return FilePrompt(Prompt(_content(fields, here)), limit)


def _content(fields: Mapping[str, Any], here: str) -> Content:
    if ("prompt" in fields) == ("messages" in fields):
        raise InputError("a line needs prompt or messages, one of them", where=here)
    if "messages" in fields:
        return _messages(fields["messages"], here)
    prompt = fields["prompt"]
    if isinstance(prompt, str) and prompt:
        return prompt
    if isinstance(prompt, list) and prompt and all(type(each) is int and 0 <= each < 2**31 for each in prompt):
        return tuple(prompt)
    raise InputError(f"prompt must be a text or token ids, not {checks.shown(prompt)}", where=here)


def _messages(found: object, here: str) -> Content:
    if not isinstance(found, list) or not found:
        raise InputError("messages must be a list of at least one", where=here)
    for each in found:
        if not isinstance(each, dict) or not isinstance(each.get("role"), str):
            what = f"a message must be an object with a role, not {checks.shown(each)}"
            raise InputError(what, where=here, hint='e.g. {"role": "user", "content": "..."}')
    return tuple(found)
