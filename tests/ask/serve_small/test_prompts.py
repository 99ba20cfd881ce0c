"""Prompts of several runs against one server."""

from __future__ import annotations

from servewise.ask.serve_small.prompts import ShiftedPrompts
from servewise.measure.load.prompt import TokenIds
from servewise.workload.request import Request


def content(prompts: ShiftedPrompts, serial: int, *hashes: int) -> tuple[object, ...]:
    """The token ids of a prompt of 48 tokens, behind 32 shared ones where hashes say so."""
    found = prompts.of(Request(serial, 0.0, 80 if hashes else 48, 1, hashes), 32).content
    assert isinstance(found, tuple)
    return found


def test_later_runs_have_other_texts_under_the_same_prefix() -> None:
    """The shared block is equal to the token, what follows it is not, and no run repeats another's prompt."""
    first = ShiftedPrompts(seed=0, material=TokenIds())
    later = first.later(1_000_000)
    a, b = content(first, 0, 0), content(later, 0, 0)
    assert len(a) == len(b) == 80
    assert a[:32] == b[:32]
    assert a[32:] != b[32:]
    assert content(first, 0) != content(later, 0)


def test_a_shift_by_one_is_the_next_request() -> None:
    """Numbers count on, so that two runs whose numbers do not overlap have no text in common."""
    first = ShiftedPrompts(seed=0, material=TokenIds())
    assert content(first.later(1), 0) == content(first, 1)
