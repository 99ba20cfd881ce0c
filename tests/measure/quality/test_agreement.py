"""Answers side by side, with tokens by hand."""

from __future__ import annotations

from math import log

import pytest
from tests.measure.quality.made import chat, completion, exchange

from servewise.measure.quality.agreement import agreement
from servewise.measure.quality.said import said_by
from servewise.measure.quality.summary import summary

HALF, TENTH = log(0.5), log(0.1)


def test_answers_that_part_are_compared_up_to_there() -> None:
    """Two tokens agree, the third does not; what follows is of other texts and counts for nothing."""
    a = exchange(*(chat(each, HALF) for each in "abcd"))
    b = exchange(*(chat(each, HALF) for each in "abxd"))
    found = agreement(a, b)
    assert found is not None
    assert (found.unit, found.equal, found.first_difference, found.compared, found.length) == ("tokens", 2, 2, 3, 4)
    assert not found.exact


def test_an_answer_that_ends_early_parts_at_its_end() -> None:
    """A prefix of the other is not the same answer."""
    found = agreement(exchange(chat("a", HALF)), exchange(chat("a", HALF), chat("b", HALF)))
    assert found is not None
    assert (found.equal, found.first_difference) == (1, 1)


def test_the_same_answer_is_exact() -> None:
    """No difference: every step is compared and equal."""
    found = agreement(exchange(chat("a", HALF), chat("b", HALF)), exchange(chat("a", HALF), chat("b", HALF)))
    assert found is not None
    assert found.exact
    assert (found.compared, found.equal) == (2, 2)


def test_chat_and_completions_tell_the_same_in_their_own_shapes() -> None:
    """A list of entries and a table give the same tokens and probabilities."""
    a, b = (
        said_by(exchange(chat("a", HALF, a=HALF, b=TENTH))),
        said_by(exchange(completion("a", HALF, a=HALF, b=TENTH))),
    )
    assert a == b
    assert a[0].shares == pytest.approx({b"a": 0.5, b"b": 0.1})


def test_an_answers_end_is_one_token_however_it_is_called() -> None:
    """llama.cpp tells it as an empty token, others by its name; neither is in the text."""
    named = exchange(
        completion("Hi", HALF), completion("<|im_end|>", HALF, **{"<|im_end|>": HALF, "x": TENTH}), text="Hi"
    )
    empty = exchange(completion("Hi", HALF), completion("", HALF, **{"": HALF, "x": TENTH}), text="Hi")
    found = agreement(named, empty)
    assert found is not None
    assert found.exact
    assert found.equal == 2
    assert found.divergences[-1].kl_low == 0.0


def test_answers_that_end_at_once_agree() -> None:
    """Nothing but the end is said by both."""
    found = agreement(exchange(completion("<end>", HALF), text=""), exchange(completion("", HALF), text=""))
    assert found is not None
    assert found.exact


def test_parts_of_characters_are_told_apart_by_their_bytes() -> None:
    """Two halves of different characters have the same text and different bytes."""
    first, second = (
        exchange({"token": "\ufffd", "logprob": HALF, "bytes": [value], "top_logprobs": []}) for value in (141, 142)
    )
    found = agreement(first, second)
    assert found is not None
    assert found.first_difference == 0


@pytest.mark.parametrize(
    "entry",
    [None, 3, {}, {"token": 4}, {"token": "a", "logprob": "x", "top_logprobs": 7}],
)
def test_logprobs_of_no_known_shape_raise_nothing(entry: object) -> None:
    """Whatever a server wrote, there is a token or there is none, and no probability out of thin air."""
    assert all(not each.shares for each in said_by(exchange(entry)))


def test_without_logprobs_the_texts_are_compared_by_characters() -> None:
    """Agreement falls back on what is there, and says so; without text there is none."""
    found = agreement(exchange(text="one two"), exchange(text="one ten"))
    assert found is not None
    assert (found.unit, found.equal, found.divergences) == ("characters", 5, ())
    assert agreement(exchange(), exchange(text="x")) is None


def test_the_divergence_at_the_parting_step_counts() -> None:
    """Both servers took that step with the same text before it; the ones after are left out."""
    a = exchange(chat("a", log(0.6), a=log(0.6), b=log(0.2)), chat("x", 0.0, x=0.0))
    b = exchange(chat("b", log(0.6), b=log(0.6), a=log(0.2)), chat("y", 0.0, y=0.0))
    found = agreement(a, b)
    assert found is not None
    assert [each.kl_low for each in found.divergences] == pytest.approx([0.4 * log(3)])


def test_the_summary_of_pairs_by_hand() -> None:
    """Steps are pooled over prompts: 1 + 3 equal of 2 + 3 compared."""
    parted = agreement(exchange(chat("a", HALF), chat("b", HALF)), exchange(chat("a", HALF), chat("c", HALF)))
    same = agreement(*(exchange(*(chat(each, HALF) for each in "abc")) for _ in range(2)))
    assert parted is not None
    assert same is not None
    found = summary([parted, same])
    assert found["exact_share"] == 0.5
    assert found["step_agreement"] == pytest.approx(4 / 5)
    assert found["first_difference_p50"] == 1
    assert found["ci95_step_agreement"] is None
