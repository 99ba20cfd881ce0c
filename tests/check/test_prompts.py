"""Changing text ahead of stable text: where, of what kind, and how many tokens it costs."""

from __future__ import annotations

import json
import random

import pytest
from tests.check.checked import codes, the

RULES = "Answer from the handbook only, cite the page, and refuse politely where it is silent. " * 40
CLOCKS = [f"Now: 2026-11-30 09:{minute:02d}:12. " for minute in range(10)]


def log(*prompts: str) -> str:
    """A log of requests with those system prompts."""
    return "\n".join(json.dumps({"messages": [{"role": "system", "content": each}]}) for each in prompts)


def test_a_clock_ahead_of_the_rules_is_found_with_its_cost() -> None:
    """Nine of ten prompts differ in the clock alone: the 3,440 characters after it and its rest are lost."""
    found = the("changing-text-first", log(*(clock + RULES for clock in CLOCKS)))
    stable = len(RULES) + len(":12. ")

    assert found.figures["kind"] == "clock"
    assert found.figures["prompts"] == 9
    assert found.figures["lost_tokens"] == pytest.approx(9 * stable / 4, abs=9)
    assert found.figures["offset_characters"] == len("<system>Now: 2026-11-30 09:0")


@pytest.mark.parametrize(
    ("changing", "kind"),
    [
        ([f"Session id: {random.Random(seed).getrandbits(64):016x}. " for seed in range(6)], "id"),
        ([f"You remember: the user likes {name}. " for name in ("tea", "chess", "jazz", "rain", "maps")], "memory"),
    ],
)  # fmt: skip
def test_kinds_are_told_apart(changing: list[str], kind: str) -> None:
    """An id and a memory put ahead of the rules are named as such."""
    assert the("changing-text-first", log(*(each + RULES for each in changing))).figures["kind"] == kind


def test_changing_text_at_the_end_is_right() -> None:
    """The same clock behind the rules costs nothing."""
    assert codes(log(*(RULES + clock for clock in CLOCKS))) == set()


def test_other_users_questions_are_no_mistake() -> None:
    """A shared system prompt with a question of its own each is how it should be."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    questions = [" ".join(random.Random(seed).choices(words, k=120)) for seed in range(8)]
    assert codes(log(*(RULES + each for each in questions))) == set()


def test_a_growing_conversation_is_no_mistake() -> None:
    """Each turn begins with all turns before it."""
    turns = [{"role": "user", "content": f"turn {number}: " + "word " * 80} for number in range(6)]
    lines = [json.dumps({"messages": turns[: number + 1]}) for number in range(6)]
    assert codes("\n".join(lines)) == set()


def test_tools_in_another_order_are_found() -> None:
    """The same tools shuffled from call to call."""
    tools = [{"name": f"tool_{number}", "description": "does one thing well, with care " * 3} for number in range(6)]
    rows = []
    for seed in range(6):
        mixed = random.Random(seed).sample(tools, 6)
        rows.append(json.dumps({"tools": mixed, "messages": [{"role": "user", "content": RULES}]}))
    found = the("tools-reordered", "\n".join(rows))
    assert found.figures["prompts"] == 5


def test_logged_bodies_and_plain_prompts_are_read() -> None:
    """A proxy's log holds the request in ``body``; a completion has ``prompt``."""
    bodies = [json.dumps({"body": {"messages": [{"role": "user", "content": clock + RULES}]}}) for clock in CLOCKS]
    plain = [json.dumps({"prompt": clock + RULES}) for clock in CLOCKS]
    assert codes("\n".join(bodies)) == codes("\n".join(plain)) == {"changing-text-first"}
