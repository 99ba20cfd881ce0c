"""Figures in prose: latencies, throughputs and speed-ups, each with its paragraph and place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from servewise.check.finding import Place
from servewise.check.reading.words import Lines

NUMBER = r"(?<![\w.])\d[\d,]*(?:\.\d+)?"
TIME = re.compile(rf"{NUMBER}\s*(?:ms|milliseconds?|s|secs?|seconds?|µs|us)\b(?!/)")
RATE = re.compile(
    rf"({NUMBER})\s*k?\s*(?:tok(?:en)?s?\s*(?:/|per )\s*s(?:ec(?:ond)?)?\b|tps\b|t/s\b|"
    rf"req(?:uest)?s?\s*(?:/|per )\s*s(?:ec(?:ond)?)?\b)",
    re.I,
)
LATENCY_WORDS = re.compile(
    r"\b(ttft|tpot|itl|e2el?|latenc(?:y|ies)|first[ -]token|per[ -](?:output[ -])?token|inter[- ]token|p50|p9[059]|"
    r"response time)\b",
    re.I,
)
SPEEDUP = re.compile(
    rf"{NUMBER}\s*(?:x|×|times)\s*(?:faster|quicker|speed[- ]?ups?|(?:higher|more|better|greater) (?:\w+ "
    rf")?throughput|"
    rf"lower (?:\w+ )?latency|the (?:throughput|speed)|improvement)|speed[- ]?ups? (?:of|is|was) (?:up to "
    rf")?{NUMBER}\s*(?:x|×)?|"
    rf"{NUMBER}\s*% (?:faster|higher throughput|more throughput|lower latency)",
    re.I,
)
PARAGRAPH = re.compile(r"\n[ \t]*\n")
TARGET = re.compile(
    r"(?:<=?|≤|\b(?:under|below|within|at most|target|slo|budget|limit|less than|up to|"
    r"keeps?)\b)[^.\n]{0,15}$",
    re.I,
)
MOST_PARAGRAPHS = 20_000
MOST_CHARACTERS = 20_000  # of a paragraph that are read


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A stretch of text between blank lines, with where it begins."""

    text: str
    offset: int
    lines: Lines

    def place(self, at: int, words: str = "") -> Place:
        """The place of the paragraph's character ``at``."""
        return self.lines.place(self.offset + at).called(" ".join(words.split())[:60])


def paragraphs(text: str) -> Iterator[Paragraph]:
    """The paragraphs of ``text`` in order."""
    lines, begin = Lines(text), 0
    for number, match in enumerate(PARAGRAPH.finditer(text)):
        if number > MOST_PARAGRAPHS:
            return
        yield Paragraph(text[begin : match.start()], begin, lines)
        begin = match.end()
    yield Paragraph(text[begin:], begin, lines)


def claims(paragraph: Paragraph) -> Iterator[re.Match[str]]:
    """Its measured figures: rates, and times beside a word of latency that are no target."""
    text = paragraph.text[:MOST_CHARACTERS]
    found = list(RATE.finditer(text))
    if LATENCY_WORDS.search(text):
        found += (
            each for each in TIME.finditer(text) if not TARGET.search(text, max(0, each.start() - 30), each.start())
        )
    yield from sorted(found, key=lambda match: match.start())
