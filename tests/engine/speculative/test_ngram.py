"""Prompt lookup against a plain search."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.speculative.lane import Lane
from servewise.engine.speculative.ngram import NgramDraft
from servewise.errors import InputError


def lane(tokens: list[int]) -> Lane:
    """A lane whose text is ``tokens``."""
    rng = np.random.default_rng(0)
    return Lane(1, list(tokens), len(tokens), 10_000, SamplingSettings(), 0, rng)


def proposed(tokens: list[int], min_n: int, max_n: int, k: int) -> tuple[int, ...]:
    """What is drafted after ``tokens``."""
    draft, one = NgramDraft(min_n, max_n), lane(tokens)
    draft.admit([one])
    return draft.propose([one], [k])[0].tokens


def searched(tokens: list[int], min_n: int, max_n: int, k: int) -> tuple[int, ...]:
    """The same by looking at every place, the longest n first, the earliest place first."""
    for n in range(max_n, min_n - 1, -1):
        for start in range(len(tokens) - n):
            if tokens[start : start + n] == tokens[-n:]:
                return tuple(tokens[start + n : start + n + k])
    return ()


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(1, 3), st.integers(0, 3), st.integers(1, 8))
def test_the_draft_is_what_a_plain_search_finds(tokens: list[int], min_n: int, more: int, k: int) -> None:
    """The longest match of the end, its earliest place, and what follows it there."""
    assert proposed(tokens, min_n, min_n + more, k) == searched(tokens, min_n, min_n + more, k)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=30), st.integers(1, 29))
def test_a_growing_text_is_indexed_as_a_whole_one(tokens: list[int], cut: int) -> None:
    """Tokens that come later are found as if they had been there from the start."""
    draft, one = NgramDraft(1, 3), lane(tokens[:cut])
    draft.admit([one])
    draft.propose([one], [2])
    one.tokens.extend(tokens[cut:])

    assert draft.propose([one], [4])[0].tokens == searched(one.tokens, 1, 3, 4)


@pytest.mark.parametrize(
    ("tokens", "min_n", "max_n", "k", "drafted"),
    [
        ([1, 2, 3, 4, 2, 3], 2, 3, 4, (4, 2, 3)),  # the example in vLLM's NgramProposer.propose
        ([1, 2, 3, 4, 1, 2, 3], 2, 3, 3, (4, 1, 2)),
        ([1, 2, 3, 4, 5, 1, 2, 3], 3, 3, 2, (4, 5)),
        ([1, 2, 3, 4, 5], 2, 2, 3, ()),
        ([7, 7, 7], 1, 2, 4, (7,)),
    ],
)
def test_hand_worked_cases(tokens: list[int], min_n: int, max_n: int, k: int, drafted: tuple[int, ...]) -> None:
    """A repeated phrase is continued, a new end drafts nothing, a match may overlap the text's end."""
    assert proposed(tokens, min_n, max_n, k) == drafted


def test_n_must_be_in_order() -> None:
    """A longest n-gram below the shortest is refused."""
    with pytest.raises(InputError, match="n-grams"):
        NgramDraft(3, 2)
