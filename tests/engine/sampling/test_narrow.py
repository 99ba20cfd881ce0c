"""The draw among few candidates gives what the whole distribution gives."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.engine.sampling.narrow import narrow_draw
from servewise.engine.sampling.probabilities import draw, probabilities
from servewise.engine.sampling_settings import SamplingSettings

each_setting = st.builds(
    SamplingSettings,
    temperature=st.sampled_from([0.3, 1.0, 1.8]),
    top_k=st.sampled_from([0, 1, 3, 15, 16, 17, 100]),
    top_p=st.sampled_from([1.0, 0.05, 0.7, 0.99]),
    min_p=st.sampled_from([0.0, 0.01, 0.5]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(each_setting, st.floats(0, 1, exclude_max=True)), min_size=1, max_size=6), st.data())
def test_a_settled_row_draws_the_whole_distributions_token(
    rows: list[tuple[SamplingSettings, float]], data: st.DataObject
) -> None:
    """Flat and steep rows, with ties: where 16 candidates settle a row, its token is the one of the full sort."""
    seed, scale = data.draw(st.integers(0, 2**32)), data.draw(st.sampled_from([0.05, 1.0, 6.0]))
    logits = torch.randn(len(rows), 300, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale
    if data.draw(st.booleans()):
        logits = logits.round(decimals=1)
    chosen, uniforms = [each for each, _ in rows], [uniform for _, uniform in rows]
    wide = draw(probabilities(logits, chosen), uniforms)
    for token, whole in zip(narrow_draw(logits, chosen, uniforms, 16), wide, strict=True):
        assert token in {None, whole}


@pytest.mark.parametrize(
    ("chosen", "settled"),
    [
        ({"top_k": 3}, True),
        ({"top_k": 4}, False),  # the last candidate might tie with the next token
        ({"top_p": 0.5}, True),
        ({"top_p": 0.999}, False),
        ({"min_p": 0.3}, True),  # exp(-1) is 0.37: two tokens
        ({"min_p": 0.01}, False),
        ({"top_k": 2, "top_p": 0.999}, True),
        ({"top_k": 100, "top_p": 0.5}, False),  # what share of the 100 best, the candidates do not tell
        ({}, False),
    ],
    ids=repr,
)
def test_what_four_candidates_settle(chosen: dict[str, float], settled: bool) -> None:
    """Logits 0, -1, -2 ... of 300 tokens: a row is settled if no token beyond the four best can be drawn."""
    logits = -torch.arange(300, dtype=torch.float64)[None]
    token = narrow_draw(logits, [SamplingSettings(**chosen)], [0.999999], 4)[0]  # type: ignore[arg-type]

    assert (token is not None) == settled


def test_ties_with_the_last_candidate_are_not_settled() -> None:
    """Ten equal logits, five candidates: top-p 0.3 keeps all ten."""
    assert narrow_draw(torch.zeros(1, 10), [SamplingSettings(top_p=0.3)], [0.5], 5) == [None]
