"""A reference build and a quantised one, whose difference is known."""

from __future__ import annotations

import json
from math import exp, log

import pytest

from servewise.measure.mock.answer import script_of
from servewise.measure.mock.asked import asked_of
from servewise.measure.mock.distribution import SHOWN, candidates, divergence
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.shape import VLLM
from servewise.measure.mock.vocabulary import WORDS, changed, drawn, runner_up


def test_words_are_tokens() -> None:
    """256 words, all different, each one word with a space before it, so that words can be counted as tokens."""
    assert len(set(WORDS)) == 256
    assert all(word.startswith(" ") and len(word.split()) == 1 for word in WORDS)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.25, 1.0])
def test_the_share_of_changed_tokens(share: float) -> None:
    """Each token is changed with the share's probability: over 50,000, within 4 standard errors of the binomial."""
    words = drawn(b"some prompt", 0, 50_000)
    other = changed(words, b"some prompt", 0, share)
    differ = [(a, b) for a, b in zip(words, other, strict=True) if a != b]
    assert abs(len(differ) / 50_000 - share) <= 4 * (share * (1 - share) / 50_000) ** 0.5
    assert all(b == runner_up(a) for a, b in differ)


def test_divergence_is_what_the_probabilities_say() -> None:
    """KL by its definition over the shown candidates of a word and of its runner-up is the closed form."""
    reference, quantised = dict(candidates(40, 5)), dict(candidates(runner_up(40), 5))
    assert len(reference) == 5
    assert reference.keys() == quantised.keys()
    kl = sum(exp(logprob) * (logprob - quantised[word]) for word, logprob in reference.items())
    assert kl == pytest.approx(divergence(1.0)) == pytest.approx((SHOWN[0] - SHOWN[1]) * log(SHOWN[0] / SHOWN[1]))
    assert sum(SHOWN) <= 1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_logprobs_are_told_with_the_words(share: float) -> None:
    """Each token comes with the log probability of what it is, and its candidates in falling order."""
    plan = MockPlan(changed_share=share)
    body = {"model": "mock", "messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "stream": True}
    asked = asked_of("chat", json.dumps(body | {"logprobs": True, "top_logprobs": 5}).encode(), {}, plan)
    script = script_of(asked, plan, VLLM, first_s=0.0, cached=0)
    lines = b"".join(each.data for each in script.writes).splitlines()
    choices = [json.loads(line[6:])["choices"][0] for line in lines if line.startswith(b"data: {")]
    told = [each["logprobs"]["content"][0] for each in choices if each["logprobs"]]
    assert len(told) == 4
    for choice, token in zip(choices[1:], told, strict=True):
        values = [each["logprob"] for each in token["top_logprobs"]]
        assert token["token"] == choice["delta"]["content"] == token["top_logprobs"][0]["token"]
        assert token["logprob"] == pytest.approx(log(SHOWN[0]))
        assert values == sorted(values, reverse=True)
