"""min-p, top-k and top-p by hand, and against a plain sort of the whole vocabulary."""

from __future__ import annotations

from math import log

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.engine.sampling.filters import CANDIDATES, filtered
from servewise.engine.sampling_settings import SamplingSettings

SHARES = [0.4, 0.1, 0.3, 0.15, 0.05]
LOGITS = torch.tensor([[log(each) for each in SHARES]], dtype=torch.float64)


def kept(logits: torch.Tensor, **chosen: float) -> list[int]:
    """The tokens that stay in a row."""
    row = filtered(logits.clone(), [SamplingSettings(**chosen)])[0]  # type: ignore[arg-type]
    tokens: list[int] = row.isfinite().nonzero().flatten().tolist()
    return tokens


@pytest.mark.parametrize(
    ("chosen", "tokens"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"top_k": 2}, [0, 2]),
        ({"top_k": 9}, [0, 1, 2, 3, 4]),
        ({"top_p": 0.41}, [0, 2]),
        ({"top_p": 0.39}, [0]),
        ({"top_p": 0.001}, [0]),
        ({"top_p": 0.84}, [0, 2, 3]),
        ({"top_p": 0.86}, [0, 1, 2, 3]),
        ({"min_p": 0.5}, [0, 2]),  # at least 0.2
        ({"min_p": 0.2}, [0, 1, 2, 3]),  # at least 0.08
        ({"min_p": 1.0}, [0]),
    ],
)
def test_by_hand(chosen: dict[str, float], tokens: list[int]) -> None:
    """Shares 0.4, 0.1, 0.3, 0.15, 0.05: who stays follows from the definitions."""
    assert kept(LOGITS, **chosen) == tokens


def test_top_p_counts_what_top_k_and_min_p_left() -> None:
    """Of the two best, 0.4 and 0.3, the first is 57%: top-p 0.55 keeps it alone, where of all it would keep both."""
    assert kept(LOGITS, top_p=0.55) == [0, 2]
    assert kept(LOGITS, top_p=0.55, top_k=2) == [0]
    assert kept(LOGITS, top_p=0.55, min_p=0.5) == [0]


def test_ties_stay_together() -> None:
    """Three equal logits and top-k 2 or top-p 0.4: which of them stays would be chance, so all do."""
    equal = torch.zeros(1, 3)

    assert kept(equal, top_k=2) == kept(equal, top_p=0.4) == [0, 1, 2]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([3, 50, CANDIDATES, 5000]), st.data())
def test_as_the_definitions_say_over_a_whole_vocabulary(seed: int, vocabulary: int, data: st.DataObject) -> None:
    """Rows with settings of their own, flat ones (whose nucleus passes the candidates) and steep ones: the kept
    tokens are those of a plain sort, row by row."""
    generator = torch.Generator().manual_seed(seed)
    scales = data.draw(st.lists(st.sampled_from([0.01, 1.0, 5.0]), min_size=1, max_size=4))
    logits = torch.randn(len(scales), vocabulary, generator=generator, dtype=torch.float64)
    logits *= torch.tensor(scales)[:, None]
    each = [
        SamplingSettings(
            top_k=data.draw(st.sampled_from([0, 1, 7, 4000])),
            top_p=data.draw(st.sampled_from([1.0, 0.1, 0.5, 0.95])),
            min_p=data.draw(st.sampled_from([0.0, 0.3])),
        )
        for _ in scales
    ]
    got = filtered(logits.clone(), each).isfinite()
    for row, one in enumerate(each):
        order = sorted(range(vocabulary), key=lambda token, row=row: -logits[row, token].item())  # type: ignore[misc]
        shares = logits[row].softmax(0).tolist()
        order = [token for token in order if shares[token] >= one.min_p * shares[order[0]]]
        order = order[: one.top_k or None]
        total, before, stays = sum(shares[token] for token in order), 0.0, []
        for token in order:
            if one.top_p == 1 or before < one.top_p * total:  # rounded sums reach the whole before the last token
                stays.append(token)
            before += shares[token]

        assert got[row].nonzero().flatten().tolist() == sorted(stays)
