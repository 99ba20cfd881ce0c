"""Weight bytes by part and format, and what a step reads of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.modelspec.load import load_model, model_names
from servewise.modelspec.spec import WeightPart
from servewise.modelspec.weights import (
    expected_experts,
    part_bytes,
    part_parameters,
    touched_share,
    weight_bytes,
    weight_bytes_read,
)
from servewise.precision import FORMATS, parse_precision

NAMES = st.sampled_from(model_names())


@given(NAMES)
def test_parts_sum_to_the_model(name: str) -> None:
    """Every parameter is in exactly one part; the tower stands beside the language model."""
    model = load_model(name)

    assert sum(part_parameters(model).values()) == model.parameters + model.tower_parameters
    assert sum(part_bytes(model).values()) == pytest.approx(weight_bytes(model))


def test_bf16_takes_two_bytes_a_parameter() -> None:
    """Llama-3-8B in bf16: 2 x 8,030,261,248 bytes."""
    assert weight_bytes(load_model("llama-3-8b")) == 2 * 8_030_261_248


def test_quantised_weights_leave_tables_and_norms() -> None:
    """int8 halves the layers' matrices, embedding and head of Llama-3-8B stay at 16 bits."""
    model = load_model("llama-3-8b")
    tables = 2 * 128_256 * 4096
    norms = 65 * 4096

    assert weight_bytes(model, FORMATS["int8"]) == (8_030_261_248 - tables - norms) + 2 * (tables + norms)


def test_sixteen_bits_expand_a_quantised_checkpoint() -> None:
    """DeepSeek-V3 asked for in bf16 takes two bytes everywhere."""
    model = load_model("deepseek-v3")

    assert weight_bytes(model, FORMATS["bf16"]) == 2 * model.parameters


def test_the_format_that_is_stored_means_as_stored() -> None:
    """gpt-oss asked for in mxfp4 keeps its attention at 16 bits, as its checkpoint does."""
    model = load_model("gpt-oss-20b")

    assert weight_bytes(model, parse_precision("mxfp4")) == weight_bytes(model)


@given(st.integers(1, 1000), st.data(), st.integers(0, 10_000))
def test_expected_experts_stay_within_bounds(experts: int, data: st.DataObject, tokens: int) -> None:
    """n tokens touch at least one token's experts, at most n times as many, never more than there are."""
    per_token = data.draw(st.integers(1, experts))
    touched = expected_experts(experts, per_token, tokens)

    assert touched <= min(experts, per_token * tokens) * (1 + 1e-9)
    assert touched >= min(tokens, 1) * per_token * (1 - 1e-9)
    assert touched <= expected_experts(experts, per_token, tokens + 1) * (1 + 1e-12)


def test_expected_experts_are_the_mean_of_a_draw() -> None:
    """Two tokens of 2 in 4 experts: 4 x (1 - (1/2)^2) = 3, the mean over all pairs of picks."""
    assert expected_experts(4, 2, 2) == 3


@given(NAMES, st.integers(1, 100_000))
def test_a_step_reads_at_most_all_weights(name: str, tokens: int) -> None:
    """No step reads more than the language model holds, and more tokens never read less."""
    model = load_model(name)
    whole = sum(size for part, size in part_bytes(model).items() if part is not WeightPart.TOWER)
    table = part_bytes(model)[WeightPart.EMBEDDING]
    read = weight_bytes_read(model, tokens)

    assert read <= (whole + table * model.tied) * (1 + 1e-9)
    assert read <= weight_bytes_read(model, tokens + 1) * (1 + 1e-12)
    assert weight_bytes_read(model, tokens, logit_rows=0) < read


def test_one_token_reads_the_active_experts() -> None:
    """One token of Mixtral reads 2 of 8 experts; a great batch reads all."""
    model = load_model("mixtral-8x7b")

    assert touched_share(model, 1) == pytest.approx(2 / 8)
    assert touched_share(model, 1000) == pytest.approx(1)
    assert weight_bytes_read(model, 1) == pytest.approx(2 * (model.active_parameters - 32_000 * 4096 + 4096))
