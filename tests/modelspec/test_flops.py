"""FLOPs against closed forms and against themselves: chunks, windows, absorbed MLA."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.modelspec.flops import (
    attention_flops_per_pair,
    causal_pairs,
    decode_flops,
    head_flops_per_token,
    layer_linear_flops_per_token,
    prefill_flops,
)
from servewise.modelspec.load import load_model, model_names

NAMES = st.sampled_from(model_names())
KEYED = st.sampled_from([name for name in model_names() if not name.startswith(("deepseek", "glm-5", "kimi"))])


def test_llama_takes_two_flops_a_parameter() -> None:
    """Llama-2-7B: two FLOPs for each parameter but the embedding's and the final norm's (Kaplan et al. 2020)."""
    model = load_model("llama-2-7b")
    without_attention = layer_linear_flops_per_token(model) + head_flops_per_token(model)

    assert without_attention == 2 * (6_738_415_616 - 32_000 * 4096 - 4096)


def test_attention_costs_four_flops_a_width_and_pair() -> None:
    """32 layers x 2 products x 2 FLOPs x 4,096 a pair, grouped queries or not (Dao et al. 2022)."""
    for name in ("llama-2-7b", "llama-3-8b"):
        assert attention_flops_per_pair(load_model(name), windowed=False) == 32 * 4 * 4096


@given(st.integers(0, 300), st.integers(1, 300), st.integers(1, 400))
def test_pairs_are_a_sum_over_positions(start: int, new: int, window: int) -> None:
    """Pairs are the sum over positions of what each attends to."""
    wanted = sum(min(position + 1, window) for position in range(start, start + new))

    assert causal_pairs(start, new, window) == wanted
    assert causal_pairs(start, new) == sum(position + 1 for position in range(start, start + new))


@given(NAMES, st.integers(0, 20_000), st.integers(1, 9_000), st.integers(1, 9_000))
def test_chunks_add_up(name: str, start: int, first: int, second: int) -> None:
    """A prompt in two chunks costs what it costs in one."""
    model = load_model(name)
    whole = prefill_flops(model, first + second, start)
    parts = prefill_flops(model, first, start, 0) + prefill_flops(model, second, start + first)

    assert parts == pytest.approx(whole, rel=1e-12)


@given(KEYED, st.integers(0, 20_000))
def test_one_token_of_prefill_is_a_decode(name: str, context: int) -> None:
    """Where keys and values are kept, decoding is prefilling one token."""
    model = load_model(name)

    assert decode_flops(model, context + 1) == pytest.approx(prefill_flops(model, 1, context), rel=1e-12)


def test_absorbed_latent_attention_costs_3_4_times_as_much() -> None:
    """DeepSeek-V3's heads on the latent: (576 + 512) against (192 + 128) a pair."""
    model = load_model("deepseek-v3")
    ratio = attention_flops_per_pair(model, windowed=False, absorbed=True) / attention_flops_per_pair(
        model, windowed=False
    )

    assert ratio == (576 + 512) / (192 + 128)


def test_sparse_attention_scores_all_and_attends_to_its_picks() -> None:
    """DeepSeek-V3.2: the indexer's 64 heads of 128 on every pair, attention on at most 2,048 tokens."""
    model = load_model("deepseek-v3.2")

    assert attention_flops_per_pair(model, windowed=False) == 2 * 61 * 64 * 128
    growth = decode_flops(model, 50_001) - decode_flops(model, 50_000)
    assert growth == pytest.approx(2 * 61 * 64 * 128)


@given(NAMES, st.integers(1, 10**6))
def test_flops_are_at_least_two_an_active_parameter(name: str, context: int) -> None:
    """A decode never takes less than two FLOPs an active layer parameter and the head."""
    model = load_model(name)
    tables = model.embedding_parameters + model.head_parameters + model.final_norm_parameters

    assert decode_flops(model, context) >= 2 * (model.active_parameters - tables) + head_flops_per_token(model)
