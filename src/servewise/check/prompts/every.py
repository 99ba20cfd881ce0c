"""All rules over a log of prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from servewise.check.finding import Finding, Place, found
from servewise.check.prompts.changing import MOST_PROMPTS, Change, changes
from servewise.check.prompts.order import reordered
from servewise.check.reading.prompts import Prompt

CHARACTERS_A_TOKEN = 4
LEAST_SHARE = 0.05
WORDS = {
    "clock": "a clock",
    "id": "an id",
    "counter": "a counter",
    "memory": "retrieved or remembered text",
    "insertion": "text put in between",
    "text": "text",
}


def check_prompts(prompts: Sequence[Prompt]) -> list[Finding]:
    """Every finding in ``prompts``, in the order in which they came."""
    moved = reordered(prompts[:MOST_PROMPTS])
    lines = {prompt.line for prompt, _ in moved}
    changing = [each for each in changes(prompts) if each.line not in lines]
    return [*_changing(prompts, changing), *_moved(prompts, moved)]


def _changing(prompts: Sequence[Prompt], found_changes: list[Change]) -> Iterator[Finding]:
    """One finding for each kind and rough depth of change that is not rare."""
    kinds = Counter(each.kind for each in found_changes)
    for kind, count in kinds.most_common():
        if count < max(1, LEAST_SHARE * len(prompts)):
            continue
        these = [each for each in found_changes if each.kind == kind]
        first = min(these, key=lambda each: each.offset)
        lost = sum(each.stable_after for each in these) // CHARACTERS_A_TOKEN
        why = (
            f"{WORDS[kind][:1].upper()}{WORDS[kind][1:]} changes at character {first.offset:,} of {count:,} "
            f"of {len(prompts):,} "
            f"prompts; {lost:,} tokens after it were the same and are prefilled again (at "
            f"{CHARACTERS_A_TOKEN} characters a token)."
        )
        place = Place(first.line, 0, f"{kind} of {first.changed} characters")
        yield found(
            "changing-text-first",
            place,
            why,
            kind=kind,
            prompts=count,
            lost_tokens=lost,
            offset_characters=first.offset,
        )


def _moved(prompts: Sequence[Prompt], moved: list[tuple[Prompt, int]]) -> Iterator[Finding]:
    if len(moved) < max(1, LEAST_SHARE * len(prompts)):
        return
    prompt, _ = moved[0]
    lost = sum(len(each.text) - at for each, at in moved) // CHARACTERS_A_TOKEN
    why = (
        f"{len(moved):,} of {len(prompts):,} prompts hold the same lines as the one before in another "
        f"order: {lost:,} tokens."
    )
    yield found("tools-reordered", Place(prompt.line, 0), why, prompts=len(moved), lost_tokens=lost)
