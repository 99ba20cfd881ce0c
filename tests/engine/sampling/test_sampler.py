"""A batch of rows, each with its own settings, stream and failures."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.engine.sampling.penalties import History
from servewise.engine.sampling.sampler import Choice, Row, random_stream, sample
from servewise.engine.sampling_settings import SamplingSettings
from servewise.errors import InputError

GREEDY = SamplingSettings(temperature=0.0)


def row(settings: SamplingSettings = GREEDY, tokens: tuple[int, ...] = (), seed: int = 0) -> Row:
    """A row without a prompt."""
    return Row(settings, History(tokens, 0), random_stream(seed))


each_setting = st.builds(
    SamplingSettings,
    temperature=st.sampled_from([0.0, 0.6, 1.0]),
    top_k=st.sampled_from([0, 3]),
    top_p=st.sampled_from([1.0, 0.6]),
    min_p=st.sampled_from([0.0, 0.1]),
    presence_penalty=st.sampled_from([0.0, 1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.5]),
    logprobs=st.none() | st.integers(0, 4),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(each_setting, min_size=1, max_size=8), st.integers(0, 2**32), st.sampled_from([20, 3000]))
def test_a_row_is_chosen_as_if_alone(each: list[SamplingSettings], seed: int, vocabulary: int) -> None:
    """Token and log probabilities of each row in a batch equal, bit by bit, those of that row in a batch of one."""
    logits = torch.randn(len(each), vocabulary, generator=torch.Generator().manual_seed(seed))
    histories = [tuple(range(index, index + 5)) for index in range(len(each))]
    together = sample(logits, [row(*facts) for facts in zip(each, histories, range(8), strict=False)])
    alone = [
        sample(logits[index : index + 1], [row(one, histories[index], index)])[0] for index, one in enumerate(each)
    ]

    assert together == alone


@pytest.mark.parametrize("penalty", [1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.parametrize("temperature", [1e-5, 1.0, 1e300])
def test_a_penalty_beyond_all_bounds_still_draws_a_token(penalty: float, temperature: float) -> None:
    """Whatever number stands in the request, the row has a token: the one that the penalty lifts most is drawn."""
    logits = torch.tensor([[2.0, 0.0, -1.0, 1.0] * 80])
    choice = sample(logits, [row(SamplingSettings(temperature=temperature, repetition_penalty=penalty), (0, 1, 2))])[0]

    assert choice is not None
    assert 0 <= choice.token < 320
    if penalty < 1 and temperature <= 1:
        assert choice.token == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_broken_row_fails_alone(bad: float) -> None:
    """NaN or +inf anywhere in a row: None for it, tokens for the others; one that is all -inf fails too."""
    logits = torch.zeros(4, 10)
    logits[:, 3] = 1.0
    logits[1, 7] = bad
    logits[2] = -float("inf")

    assert sample(logits, [row() for _ in range(4)]) == [Choice(3), None, None, Choice(3)]


def test_minus_infinity_is_a_token_that_cannot_come() -> None:
    """Masked tokens are no failure."""
    logits = torch.full((1, 5), -float("inf"))
    logits[0, 2] = 0.0

    assert sample(logits, [row(SamplingSettings(seed=1))]) == [Choice(2)]


def test_no_rows_no_tokens() -> None:
    """A step of prompt chunks alone samples nothing."""
    assert sample(torch.zeros(0, 10), []) == []


def test_log_probabilities_are_the_models_own() -> None:
    """Before penalties and temperature: log softmax of the logits, best first, as many as asked for."""
    logits = torch.tensor([[1.0, 3.0, 2.0, 0.0]])
    strict = SamplingSettings(temperature=0.2, presence_penalty=2.0, frequency_penalty=2.0, logprobs=2, top_k=1)
    choice = sample(logits, [row(strict, (1, 1))])[0]
    wanted = (logits - logits.logsumexp(-1))[0].tolist()

    assert choice is not None
    assert choice.token == 2
    assert choice.logprob == pytest.approx(wanted[2], rel=1e-6)
    assert [token for token, _ in choice.alternatives] == [1, 2]
    assert [value for _, value in choice.alternatives] == pytest.approx([wanted[1], wanted[2]], rel=1e-6)


def test_zero_alternatives_give_the_tokens_own() -> None:
    """``logprobs=0``: the chosen token's, no others; None: nothing at all."""
    logits = torch.tensor([[0.0, 0.0]])
    asked, not_asked = sample(logits.repeat(2, 1), [row(SamplingSettings(temperature=0, logprobs=0)), row()])

    assert asked is not None
    assert asked.logprob == pytest.approx(-np.log(2), rel=1e-6)
    assert asked.alternatives == ()
    assert not_asked == Choice(0, None, ())


def test_half_precision_logits_are_read_as_float() -> None:
    """bfloat16 logits draw like the same numbers in float32."""
    logits = torch.randn(3, 200, generator=torch.Generator().manual_seed(1)).bfloat16()
    rows = [SamplingSettings(top_p=0.9)] * 3
    half = sample(logits, [row(each, (), seed) for seed, each in enumerate(rows)])
    whole = sample(logits.float(), [row(each, (), seed) for seed, each in enumerate(rows)])

    assert half == whole


def test_streams_of_a_request_go_on_and_repeat() -> None:
    """One stream gives new numbers at each token; the same seed gives the same again, negative ones too."""
    first, second = random_stream(-3), random_stream(-3)
    drawn = [first.random() for _ in range(3)]

    assert drawn == [second.random() for _ in range(3)]
    assert len(set(drawn)) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("min_p", 1.1),
        ("presence_penalty", 2.1),
        ("frequency_penalty", -2.1),
        ("repetition_penalty", 0.0),
        ("logprobs", -1),
        ("stop", ("",)),
    ],
)
def test_settings_that_mean_nothing_are_refused(name: str, value: object) -> None:
    """One line that names the setting."""
    with pytest.raises(InputError, match=name):
        SamplingSettings(**{name: value})  # type: ignore[arg-type]
