"""Launches in a shell script, a document with commands in it, or a command line alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from servewise.check.engines.launch import Launch, Site, launch_of
from servewise.check.finding import Place
from servewise.check.reading.anchors import Anchor, anchors
from servewise.check.reading.words import Lines, words_from

ASSIGNED = re.compile(r"(?:^|\s)(?:export\s+)?([A-Z][A-Z0-9_]*)=(\"[^\"\n]*\"|'[^'\n]*'|\S*)")
CONTINUED = re.compile(r"\\[ \t\r]*\n")
MOST_LAUNCHES = 500  # of one text
MOST_LINES = 100  # of one command, before its program
DOCKER_GPUS = re.compile(r"--gpus[ =]+['\"]*(?:device=([\d,]+)|(\d+))")


def command_launches(
    text: str,
    *,
    place: Place | None = None,
    site: Site | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Launch]:
    """Every launch of an engine in ``text``, which begins at ``place`` of its file."""
    lines = Lines(text, *((place.line, place.column) if place else (1, 1)))
    read_to = (0, 0)
    for anchor in islice(anchors(text), MOST_LAUNCHES):
        at = lines.place(anchor.begin)
        if (at.line, at.column) <= read_to:
            continue  # within the words of the one before
        begin = _command_start(text, anchor.begin)
        before = CONTINUED.sub(" ", text[begin : anchor.begin])
        words = words_from(text, anchor.end, lines, until=_closing(text[begin : anchor.begin]))
        if not words and before.strip():
            continue
        read_to = (words[-1].place.line, words[-1].place.column) if words else read_to
        around = site or _site(before, anchor, lines)
        variables = {**(environment or {}), **_assigned(before)}
        yield launch_of(anchor.engine, words, lines.place(anchor.begin), site=around, environment=variables)


def _command_start(text: str, at: int) -> int:
    """The first line of the command that holds ``at``: lines that end in a backslash go on."""
    start = text.rfind("\n", 0, at) + 1
    for _ in range(MOST_LINES):
        before = text.rfind("\n", 0, max(start - 1, 0)) + 1
        if start == 0 or not re.search(r"\\[ \t\r]*$", text[before : start - 1]):
            break
        start = before
    return start


def _closing(before: str) -> str:
    """The quote that the command stands in, as in ``bash -c "..."``."""
    for mark in "\"'":
        if before.replace("\\" + mark, "").count(mark) % 2:
            return mark
    return "`" if before.count("`") % 2 else ""


def _site(before: str, anchor: Anchor, lines: Lines) -> Site:
    if not re.search(r"\b(docker|podman|nerdctl)\s+run\b", before):
        return Site(accelerators=_visible(before), place=lines.place(anchor.begin))
    shared = bool(re.search(r"--ipc[ =]host|--shm-size|/dev/shm", before))
    gpus = DOCKER_GPUS.search(before)
    count = None if gpus is None else int(gpus.group(2)) if gpus.group(2) else len(gpus.group(1).split(","))
    return Site(kind="docker", accelerators=count, shared_memory=shared, place=lines.place(anchor.begin))


def _visible(before: str) -> int | None:
    devices = _assigned(before).get("CUDA_VISIBLE_DEVICES", "")
    return len(devices.split(",")) if re.fullmatch(r"\d+(,\d+)*", devices) else None


def _assigned(before: str) -> dict[str, str]:
    return {name: value.strip("\"'") for name, value in ASSIGNED.findall(before)}
