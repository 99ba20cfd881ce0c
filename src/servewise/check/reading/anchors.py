"""Where a text starts an engine: by command, by module or by container image."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

PROGRAMS = {
    "vllm": (
        r"vllm\s+serve\b",
        r"-m\s+vllm\.entrypoints\.openai\.api_server\b",
        r"-m\s+vllm\.entrypoints\.api_server\b",
    ),
    "sglang": (r"-m\s+sglang\.launch_server\b", r"sglang\s+serve\b", r"-m\s+sglang_router\.launch_server\b"),
    "trtllm": (r"trtllm-serve\b(?:\s+serve\b)?",),
    "llamacpp": (r"llama-server(?:\.exe)?(?![\w-])",),
}
IMAGES = {
    "vllm": r"[\w.:/-]*vllm/vllm-openai[\w.-]*(?::[\w.-]+)?(?:@sha256:\w+)?",
    "llamacpp": r"[\w.:/-]*llama\.cpp:server[\w.-]*",
}
_ANY = re.compile(
    "|".join(f"(?P<{engine}>{'|'.join(patterns)})" for engine, patterns in PROGRAMS.items())
    + "|"
    + "|".join(rf"(?:(?<=\s){'(?P<image_' + engine + '>' + pattern + ')'})" for engine, pattern in IMAGES.items())
)
NOT_ENGINE = re.compile(r"trtllm-serve\s+(?:disaggregated|mm_embedding_serve|grpc|embeddings)\b|sglang_router")


@dataclass(frozen=True, slots=True)
class Anchor:
    """An engine's start: ``begin`` of its words, ``end`` from where its arguments are read."""

    engine: str
    begin: int
    end: int
    in_image: bool


def anchors(text: str) -> Iterator[Anchor]:
    """Each place of ``text`` that starts an engine, comments left out."""
    for match in _ANY.finditer(text):
        line_start = text.rfind("\n", 0, match.start()) + 1
        before = text[line_start : match.start()]
        if _passed_over(before, text[match.start() : match.end() + 20], match.lastgroup or ""):
            continue
        engine = (match.lastgroup or "").removeprefix("image_")
        yield Anchor(engine, match.start(), match.end(), (match.lastgroup or "").startswith("image_"))


def _passed_over(before: str, here: str, group: str) -> bool:
    stripped = before.lstrip()
    if stripped.startswith(("#", "//", "--")) or NOT_ENGINE.match(here):
        return True
    if before[-1:] and (before[-1].isalnum() or before[-1] in "-_."):
        return True
    return group.startswith("image_") and not re.search(r"\brun\b", before) and "image:" in before
