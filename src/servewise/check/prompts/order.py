"""The same lines in another order: tools, documents, examples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from servewise.check.prompts.changing import common_length
from servewise.check.reading.prompts import Prompt

LEAST_LINE = 40
LEAST_LINES = 2


def reordered(prompts: Sequence[Prompt]) -> list[tuple[Prompt, int]]:
    """The prompts whose lines after the shared beginning are those of the one before, in another order: where from."""
    found = []
    for before, prompt in pairwise(prompts):
        shared = common_length(before.text, prompt.text)
        start = prompt.text.rfind("\n", 0, shared) + 1
        old, new = _lines(before.text[start:]), _lines(prompt.text[start:])
        alike = [line for line in new if line in set(old)]
        if len(alike) >= LEAST_LINES and alike != [line for line in old if line in set(new)]:
            found.append((prompt, start))
    return found


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines()[:500] if len(line) >= LEAST_LINE]
