"""What a file holds, told by its content: launches, a config, results, prompts, claims, a log."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from servewise.check.engines.config import config_launch
from servewise.check.engines.launch import Launch
from servewise.check.reading.commands import command_launches
from servewise.check.reading.manifests import is_manifest, manifest_launches
from servewise.check.reading.prompts import Prompt, prompts_of
from servewise.check.reading.yaml_tree import yaml_trees

YAML_LINE = re.compile(r"^\s*(?:- )?[\w.\"'/-]+:(\s|$)", re.MULTILINE)
FENCED = re.compile(r"^[ \t]*```ya?ml[^\n]*\n(?P<body>.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
HEREDOC = re.compile(
    r"<<-?\s*[\"']?(?P<mark>\w+)[\"']?[^\n]*\n(?P<body>.*?)^[ \t]*(?P=mark)\b", re.MULTILINE | re.DOTALL
)
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
    """Commands anywhere in a text, and the YAML that stands in it: in fences, or between heredoc marks."""
    blocks = [block for pattern in (FENCED, HEREDOC) for block in pattern.finditer(text)]
    found: list[Launch] = []
    for block in blocks:
        launches, whole = _block(block.group("body"))
        found += (_moved(each, text.count("\n", 0, block.start("body"))) for each in launches)
        if whole:
            text = text[: block.start("body")] + _blank(block.group("body")) + text[block.end("body") :]
    launches = (*command_launches(text), *found)
    return Content(text=text, kinds=("command", "text") if launches else ("text",), launches=launches)


def _block(body: str) -> tuple[tuple[Launch, ...], bool]:
    """The launches of a stretch of YAML, and whether it is a manifest, whose commands are then all found."""
    body = textwrap.dedent(body)
    if not YAML_LINE.search(body):
        return (), False
    trees = yaml_trees(body)
    if is_manifest(trees):
        return manifest_launches(body, trees), True
    return tuple(each for tree in trees if (each := config_launch(tree)) is not None), False


def _blank(body: str) -> str:
    return re.sub(r"[^\n]", " ", body)


def _moved(launch: Launch, lines: int) -> Launch:
    """The launch with its places as of the text that holds its block."""
    site = replace(launch.site, place=launch.site.place.below(lines))
    given = tuple(replace(each, place=each.place.below(lines)) for each in launch.given)
    return replace(launch, given=given, place=launch.place.below(lines), site=site)
