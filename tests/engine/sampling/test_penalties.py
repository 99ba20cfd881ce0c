"""Penalties by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from servewise.engine.sampling.penalties import History, penalised
from servewise.engine.sampling_settings import SamplingSettings

LOGITS = torch.tensor([[2.0, -2.0, 1.0, 4.0]], dtype=torch.float64)


def after(settings: SamplingSettings, prompt: list[int], output: list[int]) -> list[float]:
    """The row's logits after the penalties."""
    row: list[float] = penalised(LOGITS, [settings], [History(prompt + output, len(prompt))])[0].tolist()
    return row


def test_repetition_divides_positive_and_multiplies_negative_logits_of_prompt_and_output() -> None:
    """Factor 2 over tokens 0 (prompt), 1 and 3 (output): 2 -> 1, -2 -> -4, 4 -> 2; token 2 is untouched."""
    assert after(SamplingSettings(repetition_penalty=2.0), [0, 0], [1, 3]) == [1.0, -4.0, 1.0, 2.0]


def test_frequency_counts_the_output_alone() -> None:
    """0.5 x 3 occurrences of token 3, 0.5 x 1 of token 0; the prompt's tokens cost nothing."""
    assert after(SamplingSettings(frequency_penalty=0.5), [2, 2], [3, 0, 3, 3]) == [1.5, -2.0, 1.0, 2.5]


def test_presence_costs_once() -> None:
    """0.5 for each token that came, however often."""
    assert after(SamplingSettings(presence_penalty=0.5), [2], [3, 0, 3, 3]) == [1.5, -2.0, 1.0, 3.5]


def test_repetition_comes_first() -> None:
    """Token 3: 4 / 2 - 1 - 0.5 = 0.5; subtracting first would give (4 - 1.5) / 2 = 1.25."""
    settings = SamplingSettings(repetition_penalty=2.0, frequency_penalty=1.0, presence_penalty=0.5)

    assert after(settings, [], [3])[3] == 0.5


def test_rows_are_penalised_by_their_own_history_and_settings() -> None:
    """Two rows of equal logits: only the one with a penalty changes, and the given logits never do."""
    two = LOGITS.repeat(2, 1)
    settings = [SamplingSettings(), SamplingSettings(presence_penalty=1.0)]
    out = penalised(two, settings, [History([0, 1, 2, 3], 0), History([2], 0)])

    assert out.tolist() == [[2.0, -2.0, 1.0, 4.0], [2.0, -2.0, 0.0, 4.0]]
    assert two.equal(LOGITS.repeat(2, 1))


def test_an_empty_output_is_no_trouble() -> None:
    """At the first token there is nothing to count."""
    assert after(SamplingSettings(frequency_penalty=1.0, presence_penalty=1.0), [0], []) == LOGITS[0].tolist()
