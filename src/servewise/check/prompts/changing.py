"""Text that changes from prompt to prompt, ahead of text that stays: where, of what kind, and what it costs.

Each prompt is set against the one before it that shares its longest beginning. Where they part, the shortest stretch is
sought after which both go on alike: that stretch is what changed, the rest after it is lost to a prefix cache although
it was the same. Text whose rest differs too (another user's question) is nobody's mistake.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from servewise.check.reading.prompts import Prompt

LEAST_STABLE = 200  # characters that must go on alike after the change
LONGEST_CHANGE = 4_000  # characters that may change
WINDOW = 8  # prompts back that one is set against
MOST_PROMPTS = 5_000
STEP = 24
KINDS = (
    ("clock", re.compile(r"\d{1,2}:\d{2}(?::\d{2})?|\d{4}-\d{2}-\d{2}|\d{10,13}|\b(?:mon|tue|wed|thu|fri|"
                         r"sat|sun)[a-z]*day\b|"
                         r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d", re.I)),
    ("id", re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}|\b[0-9a-f]{12,}\b|\b(?:id|uuid|session|request|trace)[ _=:-]", re.I)),
    ("counter", re.compile(r"^\W*\d+\W*$")),
    ("memory", re.compile(r"\b(?:memor(?:y|ies)|remember|recall|retrieved|context|facts?|preferences?|"
                          r"profile|document)\b", re.I)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """A change ahead of stable text: ``offset`` of its first character in the prompt at ``line``."""

    line: int
    offset: int
    kind: str
    changed: int
    stable_after: int


def changes(prompts: Sequence[Prompt]) -> list[Change]:
    """The change of each prompt against its nearest, where stable text follows it."""
    found = []
    for index, prompt in enumerate(prompts[:MOST_PROMPTS]):
        before = prompts[max(0, index - WINDOW) : index]
        shared = [(common_length(prompt.text, each.text), each) for each in before]
        if not shared:
            continue
        length, nearest = max(shared, key=lambda pair: pair[0])
        change = _change(nearest.text, prompt, length)
        if change is not None:
            found.append(change)
    return found


def common_length(a: str, b: str) -> int:
    """How many leading characters are alike.

    >>> common_length("abcd", "abxd")
    2
    """
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle - 1)
    return low


def _change(before: str, prompt: Prompt, shared: int) -> Change | None:
    old, new = before[shared:], prompt.text[shared:]
    if min(len(old), len(new)) < LEAST_STABLE:
        return None
    resumed = _resumes(old, new)
    if resumed is None:
        return None
    skip_old, skip_new = resumed
    stable = common_length(old[skip_old:], new[skip_new:])
    words = prompt.text[max(0, shared - 40) : shared] + new[:skip_new]
    return Change(prompt.line, shared, _kind(new[:skip_new], old[:skip_old], words), skip_new, stable)


def _resumes(old: str, new: str) -> tuple[int, int] | None:
    """The shortest skips after which ``LEAST_STABLE`` characters go on alike; None where none do."""
    for skip_new in range(0, min(len(new) - LEAST_STABLE, LONGEST_CHANGE) + 1, STEP):
        piece = new[skip_new : skip_new + LEAST_STABLE]
        skip_old = old.find(piece, 0, LONGEST_CHANGE + LEAST_STABLE)
        if skip_old >= 0:
            back = 0
            while back < min(skip_old, skip_new) and old[skip_old - back - 1] == new[skip_new - back - 1]:
                back += 1
            return skip_old - back, skip_new - back
    return None


def _kind(new: str, old: str, words: str) -> str:
    """What kind of text changed: told by what is new, then by the words before it."""
    for name, pattern in KINDS:
        if (
            pattern.search(new)
            or (name in ("clock", "id", "memory") and pattern.search(words))
            or (name == "counter" and new.isdigit())
        ):
            return name
    return "insertion" if not old.strip() or not new.strip() else "text"
