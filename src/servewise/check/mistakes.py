"""The catalogue of mistakes: each code with what it means, why it costs something, its cure and its source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A mistake by its stable code; ``severity`` is the usual one, a case may weigh more or less.

    ``subject`` groups them: memory, scheduling, parallelism, speculation, precision, prefix, options, operation,
    claims, prompts.
    """

    code: str
    subject: str
    severity: Literal["error", "warning", "note"]
    title: str
    why: str
    cure: str
    source: str


def _load() -> Mapping[str, Mistake]:
    text = files("servewise.check").joinpath("mistakes.toml").read_text(encoding="utf-8")
    return {code: Mistake(code=code, **table) for code, table in tomllib.loads(text).items()}


MISTAKES = _load()
