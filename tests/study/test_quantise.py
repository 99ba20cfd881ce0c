"""Quantisation of the tiny transformer: the grid by its definition, the study's table by order and magnitude."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.study import sensitivity
from servewise.study.quantise import in_float16, kv_store, quantise_weights, round_to_nearest
from servewise.study.sensitivity import BITS, TARGETS, Shift, Shifts, compare, mean
from servewise.study.transformer import Floats, KvCache, TransformerConfig, forward, random_transformer, softmax

# The study's table: KL and top-1 agreement.
STUDY = {
    ("weights", 8): (0.00007, 0.997),
    ("weights", 6): (0.0014, 0.975),
    ("weights", 4): (0.027, 0.931),
    ("weights", 3): (0.113, 0.875),
    ("weights", 2): (0.847, 0.705),
    ("KV cache", 8): (0.00001, 0.998),
    ("KV cache", 6): (0.0001, 0.997),
    ("KV cache", 4): (0.0019, 0.982),
    ("KV cache", 3): (0.011, 0.959),
    ("KV cache", 2): (0.091, 0.884),
}


@pytest.fixture(scope="module")
def shifts() -> Shifts:
    """KL and agreement of every model, measured once."""
    return sensitivity.measure()


@pytest.mark.parametrize(("target", "bits"), STUDY)
def test_kl_is_of_the_studys_magnitude(shifts: Shifts, target: str, bits: int) -> None:
    """The mean KL lies within a factor of 10 of the study's, whose weights are unknown."""
    study, ours = STUDY[target, bits][0], mean(shifts[target, bits]).kl
    assert study / 10 < ours < study * 10


@pytest.mark.parametrize(("target", "bits"), STUDY)
def test_agreement_is_of_the_studys_magnitude(shifts: Shifts, target: str, bits: int) -> None:
    """The odds that the best token changes lie within a factor of 10 of the study's."""
    study, ours = STUDY[target, bits][1], mean(shifts[target, bits]).agreement
    odds, study_odds = (1 - ours) / ours, (1 - study) / study
    assert study_odds / 10 < odds < study_odds * 10


@pytest.mark.parametrize("target", TARGETS)
def test_every_bit_less_costs_in_every_model(shifts: Shifts, target: str) -> None:
    """In each random model, not only on average, KL rises from 8 to 6, 4, 3 and 2 bits."""
    for model in range(sensitivity.MODELS):
        kls = [shifts[target, bits][model].kl for bits in BITS]
        assert all(more < fewer for more, fewer in pairwise(kls))


def test_the_cache_tolerates_fewer_bits_than_the_weights(shifts: Shifts) -> None:
    """In each random model and at each width the cache's KL is below the weights', as in the study."""
    for bits in BITS:
        pairs = zip(shifts["KV cache", bits], shifts["weights", bits], strict=True)
        assert all(cache.kl < weights.kl for cache, weights in pairs)


def test_the_table_agrees_and_says_why_it_may(shifts: Shifts) -> None:
    """Every row agrees, and the note says that the study's weights are unknown."""
    table = sensitivity.table_of(shifts)
    assert table.agrees
    assert "unknown" in table.note


def test_a_tenfold_kl_is_refused() -> None:
    """A model whose KL were 11 times the study's would not agree."""
    kl = STUDY["weights", 4][0] * 11
    rows = sensitivity.rows_of("weights", 4, [Shift(kl, 0.931), Shift(kl, 0.931)])
    assert [row.agrees for row in rows] == [False, True]


arrays = st.integers(0, 10**6).map(lambda seed: np.random.default_rng(seed).normal(size=(5, 7)) * 10 ** (seed % 7 - 3))


@given(arrays, st.integers(2, 8), st.sampled_from([0, 1]))
def test_round_to_nearest_is_the_nearest_point_of_its_grid(values: Floats, bits: int, axis: int) -> None:
    """Each value moves by at most half a step, onto at most 2^bits - 1 levels, and the largest of a slice stays."""
    rounded = round_to_nearest(values, bits, axis)
    largest = np.abs(values).max(axis=axis, keepdims=True)
    step = largest / (2 ** (bits - 1) - 1)
    assert np.all(np.abs(rounded - values) <= step / 2 * (1 + 1e-9))
    np.testing.assert_allclose(rounded / step, np.round(rounded / step), atol=1e-9)
    np.testing.assert_allclose(np.abs(rounded).max(axis=axis, keepdims=True), largest)
    np.testing.assert_allclose(round_to_nearest(rounded, bits, axis), rounded, atol=1e-12 * largest.max())


def test_zeros_stay_and_one_bit_is_refused() -> None:
    """A slice of zeros has no scale and stays zero; a symmetric grid of one bit does not exist."""
    assert round_to_nearest(np.zeros((2, 3)), 4, 1).tolist() == np.zeros((2, 3)).tolist()
    with pytest.raises(InputError):
        round_to_nearest(np.ones((1, 1)), 1, 0)


def test_weights_are_quantised_all_and_norms_not() -> None:
    """Every matrix changes at 4 bits, each output channel on at most 15 levels; the norms stay."""
    model = random_transformer(TransformerConfig(), 0)
    small = quantise_weights(model, 4)
    for block, other in zip(model.blocks, small.blocks, strict=True):
        for name in (each.name for each in fields(block)):
            same = np.array_equal(getattr(block, name), getattr(other, name))
            assert same == name.endswith("_norm")
            if not same:
                assert all(len(np.unique(column)) <= 15 for column in getattr(other, name).T)
    assert not np.array_equal(model.head, small.head)
    assert all(len(np.unique(row)) <= 15 for row in small.embedding)


def test_a_quantised_cache_is_read_back_quantised() -> None:
    """What a 3-bit cache holds lies on at most 7 levels a token and head, also when it is filled token by token."""
    model = random_transformer(TransformerConfig(), 0)
    tokens = np.arange(9)
    whole, single = KvCache.empty(model.config, kv_store(3)), KvCache.empty(model.config, kv_store(3))
    at_once = forward(model, tokens, whole)
    one_by_one = np.concatenate([forward(model, tokens[place : place + 1], single) for place in range(9)])
    np.testing.assert_allclose(at_once, one_by_one, atol=1e-10)
    held = whole.keys[:, :, :9].reshape(-1, model.config.head_width)
    assert max(len(np.unique(np.round(row, 12))) for row in held) <= 7


def test_kl_is_zero_for_equals_and_known_for_a_pair() -> None:
    """KL(p, p) = 0; KL((1/2, 1/2), (1/4, 3/4)) = ln 2 - ln(3) / 2 = 0.1438 nats by hand."""
    p, q = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
    assert compare(p, p) == Shift(0.0, 1.0)
    assert compare(p, q).kl == pytest.approx(0.5 * np.log(0.5 / 0.25) + 0.5 * np.log(0.5 / 0.75))
    assert compare(p, q).kl == pytest.approx(0.1438, abs=1e-4)


def test_the_reference_predicts_as_sharply_as_a_language_model() -> None:
    """The tiny model's mean entropy is 1.5 to 3 nats: the sharpness of trained language models, not ln 64 = 4.2."""
    model = in_float16(random_transformer(TransformerConfig(), 0))
    p = softmax(forward(model, np.random.default_rng(0).integers(0, 64, 128), KvCache.empty(model.config)))
    assert 1.5 < float(np.mean(-np.sum(p * np.log(p), axis=-1))) < 3
