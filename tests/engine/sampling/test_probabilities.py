"""The distribution by hand, and draws from it by chi-square."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from scipy import stats

from servewise.engine.sampling.penalties import History
from servewise.engine.sampling.probabilities import draw, probabilities
from servewise.engine.sampling_settings import SamplingSettings

LOGITS = torch.tensor([[1.0, 0.0, -1.0, 2.0]], dtype=torch.float64)


def shares(**chosen: float) -> np.ndarray:
    """The row's probabilities."""
    row: np.ndarray = probabilities(LOGITS, SamplingSettings(**chosen))[0].numpy()  # type: ignore[arg-type]
    return row


def softmax(logits: list[float]) -> np.ndarray:
    """exp(x) / sum exp(x)."""
    powers = np.exp(np.array(logits))
    whole: np.ndarray = powers / powers.sum()
    return whole


def test_temperature_divides_logits() -> None:
    """Temperature 0.5 doubles the logits."""
    np.testing.assert_allclose(shares(temperature=0.5), softmax([2, 0, -2, 4]), rtol=1e-12)


@pytest.mark.parametrize("temperature", [0.0, 9e-6])
def test_greedy_has_a_single_one(temperature: float) -> None:
    """Temperature 0, and what counts as 0: all on the best token."""
    assert shares(temperature=temperature).tolist() == [0, 0, 0, 1]


def test_what_is_left_is_renormalised() -> None:
    """Top-k 2 keeps logits 1 and 2."""
    np.testing.assert_allclose(shares(top_k=2), [*softmax([1, 2])[:1], 0, 0, *softmax([1, 2])[1:]], rtol=1e-12)


def test_min_p_is_measured_after_the_temperature() -> None:
    """exp(-1) = 0.37 of the best falls under min-p 0.5; at temperature 2 it is exp(-0.5) = 0.61 and stays."""
    assert (shares(min_p=0.5) > 0).tolist() == [False, False, False, True]
    assert (shares(min_p=0.5, temperature=2.0) > 0).tolist() == [True, False, False, True]


def test_penalties_come_before_the_temperature() -> None:
    """Presence 1 on token 3 makes logits 1, 0, -1, 1; temperature 0.5 doubles that."""
    settings = SamplingSettings(presence_penalty=1.0, temperature=0.5)
    got = probabilities(LOGITS, settings, [History([3], 0)])[0].numpy()

    np.testing.assert_allclose(got, softmax([2, 0, -2, 2]), rtol=1e-12)


def test_a_penalty_can_change_the_greedy_token() -> None:
    """Presence 2 takes token 3 from 2 to 0, under token 0."""
    settings = SamplingSettings(presence_penalty=2.0, temperature=0.0)

    assert probabilities(LOGITS, settings, [History([3], 0)])[0].tolist() == [1, 0, 0, 0]


def test_draws_follow_the_uniform() -> None:
    """Shares 0.2, 0, 0.5, 0.3: the first token whose cumulative share passes u; a share of 0 is never drawn."""
    row = torch.tensor([[0.2, 0.0, 0.5, 0.3]], dtype=torch.float64)
    uniforms = [0.0, 0.1999, 0.2, 0.69, 0.71, 1 - 2**-53]

    assert draw(row.repeat(6, 1), uniforms) == [0, 0, 2, 2, 3, 3]


def test_the_last_share_of_zero_is_never_drawn() -> None:
    """Even the greatest uniform below 1 draws a token that has a share, in sums that round."""
    rows = torch.rand(200, 50, generator=torch.Generator().manual_seed(1))
    rows[:, -10:] = 0.0

    assert max(draw(rows, [1 - 2**-53] * 200)) == 39
    assert min(draw(rows.flip(-1), [0.0] * 200)) == 10


@pytest.mark.parametrize("chosen", [{}, {"temperature": 1.7}, {"top_k": 5}, {"top_p": 0.7}, {"min_p": 0.1}], ids=repr)
def test_draws_have_the_distribution(chosen: dict[str, float]) -> None:
    """50,000 draws over 30 tokens against the probabilities: chi-square p above 1e-4 (the seed is fixed)."""
    logits = torch.randn(1, 30, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 2
    row = probabilities(logits, SamplingSettings(**chosen))  # type: ignore[arg-type]
    count = 50_000
    tokens = draw(row.expand(count, -1), np.random.default_rng(3).random(count).tolist())
    seen, expected = np.bincount(tokens, minlength=30), row[0].numpy() * count
    likely = expected >= 5

    assert seen[expected == 0].sum() == 0
    rest_seen, rest_expected = seen[~likely].sum(), expected[~likely].sum()
    observed = [*seen[likely], *([rest_seen] if rest_expected > 0 else [])]
    predicted = [*expected[likely], *([rest_expected] if rest_expected > 0 else [])]
    assert stats.chisquare(observed, predicted).pvalue > 1e-4
