"""Claims in prose: figures without conditions, nothing to repeat, speed-ups without a workload."""

from __future__ import annotations

import re
from collections.abc import Iterator

from servewise.check.finding import Finding, Severity, found
from servewise.check.reading.anchors import anchors
from servewise.check.reports.conditions import COMMAND, EVALUATION, MEAN, PERCENTILE, SPREAD, missing
from servewise.check.reports.figures import LATENCY_WORDS, RATE, SPEEDUP, Paragraph, claims, paragraphs

BASELINE = re.compile(r"\b(?:vs\.?|versus|compared|than|over|against|baseline|relative to|without|from)\b", re.I)
NO_LOSS = re.compile(
    r"\b(?:no|without|zero|negligible|minimal|lossless|little|not? (?:any )?(?:measurable|noticeable))\b[^.\n]{0,40}"
    r"\b(?:quality|accuracy|degradation|loss)\b|\blossless(?:ly)?\b|quality is (?:the same|unchanged|identical)",
    re.I,
)
RUINS = re.compile(r"\b(?:always|ruins?|destroys?|kills?|never)\b[^.\n]{0,60}\b(?:quality|accuracy)\b", re.I)
FEWER_BITS = re.compile(r"quanti[sz]|\b(?:fp8|int8|int4|4-bit|8-bit|awq|gptq|nvfp4|gguf|q4_\w+)\b", re.I)
PER_TOKEN = re.compile(
    r"(\d[\d,]*(?:\.\d+)?)\s*ms\b[^.\n]{0,20}(?:per|/|a)[ -]?(?:output[ -])?token|TPOT[^.\n\d]{0,20}(\d[\d,.]*)\s*ms",
    re.I,
)
STREAMS = re.compile(
    r"(?:concurrency|batch(?:[ _-]size)?|streams|users|clients)\D{0,12}(\d+)|(\d+) (?:concurrent|streams|"
    r"users|clients)",
    re.I,
)
STATIC = re.compile(r"\bstatic(?:ally)?[ -]batch", re.I)
DRAFT_LENGTH = re.compile(
    r"num_speculative_tokens\W{0,5}\d+|\bK ?= ?\d+\b|\d+ (?:draft|speculative) tokens|draft length of \d+", re.I
)
MOST_CHARACTERS = 500_000  # of a document that are read as prose


def check_claims(text: str) -> list[Finding]:
    """Every finding in the prose of ``text``."""
    text = text[:MOST_CHARACTERS]
    parts = list(paragraphs(text))
    return [*_document(text, parts), *(finding for part in parts for finding in _paragraph(text, part))]


def _document(text: str, parts: list[Paragraph]) -> Iterator[Finding]:
    """What holds of the document as a whole, said once, at its first figure."""
    stated = [(part, match) for part in parts for match in claims(part)]
    if not stated:
        return
    part, first = stated[0]
    place = part.place(first.start(), first.group())
    lacking = missing(text)
    if lacking:
        why = f"{len(stated)} figures, none with {' or '.join(lacking)} beside it."
        cure = f"State {', '.join(lacking)}."
        severity: Severity = "warning" if len(lacking) > 1 or "hardware" in lacking else "note"
        yield found("latency-without-conditions", place, why, cure=cure, severity=severity, missing=list(lacking))
    if not COMMAND.search(text):
        yield found("not-reproducible", place)
    if not SPREAD.search(text):
        yield found("one-run", place)
    if MEAN.search(text) and LATENCY_WORDS.search(text) and not PERCENTILE.search(text):
        yield found("mean-only", place)


def _paragraph(text: str, part: Paragraph) -> Iterator[Finding]:
    yield from _speedup(text, part)
    yield from _reciprocal(text, part)
    yield from _quality(text, part)
    static = STATIC.search(part.text)
    if static and not re.search(r"continuous|in-?flight|instead of|not static", part.text, re.I):
        yield found("static-batching", part.place(static.start(), static.group()))
    length = DRAFT_LENGTH.search(part.text)
    launched = next(anchors(part.text), None) is not None  # its own options are checked as such
    if length and not launched and re.search(r"specul|draft", part.text, re.I) and not re.search(r"accept", text, re.I):
        yield found("speculation-unmeasured", part.place(length.start(), length.group()))


def _speedup(text: str, part: Paragraph) -> Iterator[Finding]:
    claim = SPEEDUP.search(part.text)
    if claim is None:
        return
    lacking = [name for name in missing(text) if name in ("load", "lengths")]
    if not BASELINE.search(part.text):
        lacking.append("the baseline")
    if lacking:
        why = (
            f"{claim.group().strip()}: {' and '.join(lacking)} not stated; the same change gives 2.8x "
            f"here and 1.04x there."
        )
        yield found("speedup-without-workload", part.place(claim.start(), claim.group()), why, missing=lacking)


def _reciprocal(text: str, part: Paragraph) -> Iterator[Finding]:
    """A time per token that is 1 / throughput although several streams ran."""
    streams = max((int(a or b) for a, b in STREAMS.findall(text)[:50]), default=1)
    time = PER_TOKEN.search(part.text)
    if streams < 2 or time is None:
        return
    token_ms = _number(time.group(1) or time.group(2))
    for rate in RATE.finditer(part.text):
        per_s = _number(rate.group(1))
        if per_s and token_ms and abs(token_ms - 1000 / per_s) < 0.02 * token_ms:
            why = (
                f"{token_ms:g} ms a token is 1 / {per_s:g} tokens/s, the rate of {streams} streams "
                f"together: each waits "
                f"about {streams * token_ms:g} ms."
            )
            yield found("throughput-read-as-latency", part.place(time.start(), time.group()), why, streams=streams)
            return


def _quality(text: str, part: Paragraph) -> Iterator[Finding]:
    claim = NO_LOSS.search(part.text) or RUINS.search(part.text)
    if claim and FEWER_BITS.search(part.text) and not EVALUATION.search(text):
        yield found("quality-claim-unmeasured", part.place(claim.start(), claim.group()))


def _number(text: str | None) -> float:
    try:
        return float((text or "").replace(",", "").rstrip("."))
    except ValueError:
        return 0.0
