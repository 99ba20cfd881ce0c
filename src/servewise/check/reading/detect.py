"""What a file holds, told by its content: launches, a config, results, prompts, claims, a log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servewise.check.engines.config import config_launch
from servewise.check.engines.launch import Launch
from servewise.check.reading.commands import command_launches
from servewise.check.reading.manifests import is_manifest, manifest_launches
from servewise.check.reading.prompts import Prompt, prompts_of
from servewise.check.reading.yaml_tree import yaml_trees

YAML_LINE = re.compile(r"^\s*(?:- )?[\w.\"'/-]+:(\s|$)", re.MULTILINE)
MOST_JSON_LINES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What was found in a text. ``kinds`` name it: kubernetes, compose, config, command, prompts, result, text."""

    text: str
    kinds: tuple[str, ...]
    launches: tuple[Launch, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    documents: tuple[Mapping[str, Any], ...] = field(default=())


def read(text: str, engine: str | None = None) -> Content:
    """The parts of ``text``; ``engine`` names a config's engine where its keys do not tell."""
    lines = _json_lines(text)
    prompts = prompts_of(lines)
    if prompts:
        return Content(text=text, kinds=("prompts",), prompts=prompts)
    if lines:
        documents = tuple(each for _, each in lines if isinstance(each, Mapping))
        return Content(text=text, kinds=("result",), documents=documents)
    return _yaml(text, engine) or _plain(text)


def _json_lines(text: str) -> list[tuple[int, Any]]:
    """The JSON values of a text that is one, or one a line, with their lines; none where any line is not JSON."""
    stripped = text.lstrip("\ufeff \t\r\n")
    if not stripped or stripped[0] not in "[{":
        return []
    try:
        whole = json.loads(stripped)
        return [(1, each) for each in whole] if isinstance(whole, list) else [(1, whole)]
    except (ValueError, RecursionError):
        return _each_line(text)


def _each_line(text: str) -> list[tuple[int, Any]]:
    found: list[tuple[int, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if len(found) >= MOST_JSON_LINES:
            break
        try:
            found.append((number, json.loads(line)))
        except (ValueError, RecursionError):
            return []
    return found


def _yaml(text: str, engine: str | None) -> Content | None:
    if not YAML_LINE.search(text):
        return None
    trees = yaml_trees(text)
    if is_manifest(trees):
        kind = "compose" if any("services" in each.value for each in trees if isinstance(each.value, dict)) else ""
        return Content(text=text, kinds=(kind or "kubernetes",), launches=manifest_launches(text, trees))
    launches = tuple(each for tree in trees if (each := config_launch(tree, engine)) is not None)
    return Content(text=text, kinds=("config",), launches=launches) if launches else None


def _plain(text: str) -> Content:
    launches = tuple(command_launches(text))
    blocks = _yaml_blocks(text)
    kinds = ("command",) if launches or blocks else ()
    return Content(text=text, kinds=(*kinds, "text"), launches=(*launches, *blocks))


def _yaml_blocks(text: str) -> tuple[Launch, ...]:
    """Configs in the fenced YAML blocks of a document; commands in them are found as any others."""
    found: list[Launch] = []
    for match in re.finditer(r"^```ya?ml\s*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        trees = yaml_trees(match.group(1))
        if not is_manifest(trees):
            found += [each for tree in trees if (each := config_launch(tree)) is not None]
    return tuple(found)
