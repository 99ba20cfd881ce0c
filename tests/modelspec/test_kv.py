"""KV bytes against what engines printed at start-up and what papers give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.modelspec.hf_config import parse_config
from servewise.modelspec.kv import (
    kv_bytes,
    kv_bytes_per_token,
    kv_bytes_per_token_per_rank,
    kv_read_bytes_per_token,
    rank_kv_values,
    state_bytes_per_sequence,
    windowed_kv_bytes_per_token,
)
from servewise.modelspec.load import load_model, model_names
from servewise.precision import FORMATS
from servewise.units import GIB

BF16, FP8 = FORMATS["bf16"], FORMATS["fp8"]


@pytest.mark.parametrize(
    ("name", "kv", "tensor", "wanted"),
    [
        ("llama-3-8b", BF16, 1, 131_072),
        ("qwen2.5-7b", BF16, 1, 57_344),
        ("qwen3-4b", BF16, 1, 147_456),
        ("qwen3-235b-a22b", BF16, 4, 48_128),
        ("glm-4.5-air", BF16, 2, 94_208),
        ("glm-4.6", BF16, 2, 188_416),
        ("minimax-m2.5", BF16, 1, 253_952),
        ("minimax-m2.5", BF16, 4, 253_952 // 4),
        ("llama-4-scout-17b-16e", BF16, 8, 24_576),
        ("kimi-k2", BF16, 1, 61 * 576 * 2),
        ("kimi-k2", BF16, 16, 61 * 576 * 2),  # the latent is not divided
        ("glm-5.1", FP8, 8, 78 * (656 + 132)),
        ("glm-5", BF16, 8, 78 * (1152 + 132)),
        ("llama-2-13b", BF16, 1, 819_200),
        ("deepseek-v3", BF16, 8, 61 * 576 * 2),
    ],
)
def test_bytes_per_token_are_what_engines_allocate(name: str, kv: object, tensor: int, wanted: int) -> None:
    """A token takes, on one rank and to the byte, what engines reported for that model."""
    assert kv_bytes_per_token_per_rank(load_model(name), kv, tensor) == wanted  # type: ignore[arg-type]


def test_gpt_oss_needs_what_vllm_refused_it_for() -> None:
    """gpt-oss-120b at 131,072 tokens with 1,024 batched tokens needs 4.54 GiB (vLLM issue 27508)."""
    model = load_model("gpt-oss-120b")

    needed = kv_bytes(model, 131_072, BF16, new_tokens=1024)

    assert round(needed / GIB, 2) == 4.54


def test_a_window_stops_growing() -> None:
    """Beyond the window only the full layers of gpt-oss grow: 18 of 36, 2,048 bytes a token each."""
    model = load_model("gpt-oss-120b")

    assert kv_bytes(model, 10_001, BF16) - kv_bytes(model, 10_000, BF16) == 18 * 2048
    assert windowed_kv_bytes_per_token(model, BF16) == 18 * 2048
    assert kv_bytes(model, 128, BF16) == 128 * kv_bytes_per_token(model, BF16)


def test_kv_heads_are_replicated_beyond_their_number() -> None:
    """With more ranks than KV heads each rank holds one whole head."""
    model = load_model("qwen3-235b-a22b")  # 4 KV heads of 128

    assert kv_bytes_per_token_per_rank(model, BF16, 8) == kv_bytes_per_token_per_rank(model, BF16, 4)
    assert rank_kv_values(model.layers[0].attention, 8) == 2 * 128


def test_decode_context_parallel_divides_the_latent() -> None:
    """Ranks that share the context hold their part of the tokens, MLA's too."""
    model = load_model("kimi-k2")

    assert kv_bytes_per_token_per_rank(model, BF16, 8, decode_context_parallel=8) == 70_272 / 8


def test_linear_layers_keep_a_state_of_fixed_size() -> None:
    """Qwen3-Next: 36 states of 32 x 128 x 128 in fp32 with 3 inputs of an 8,192-wide convolution; 12 layers have KV."""
    model = load_model("qwen3-next-80b-a3b")

    assert state_bytes_per_sequence(model) == 36 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)
    assert kv_bytes_per_token(model, BF16) == 12 * 2 * 2 * 256 * 2
    assert kv_bytes(model, 5, BF16) == state_bytes_per_sequence(model) + 5 * kv_bytes_per_token(model, BF16)


def test_sparse_attention_reads_the_picks_and_all_index_keys() -> None:
    """DeepSeek-V3.2 reads 1,152 bytes of at most 2,048 tokens and 132 index bytes of every token, a layer."""
    model = load_model("deepseek-v3.2")

    assert model.read_window_tokens == 2048
    assert model.window_tokens is None
    assert kv_read_bytes_per_token(model, BF16, windowed=True) == 61 * 1152
    assert kv_read_bytes_per_token(model, BF16, windowed=False) == 61 * 132


def test_the_study_takes_1_68_gb_at_2048_tokens() -> None:
    """Llama-2-13B's cache of 2,048 tokens is 1.68 GB in 16 bits (the study's table)."""
    assert round(kv_bytes(load_model("llama-2-13b"), 2048, BF16) / 1e9, 2) == 1.68


def test_sharing_layers_have_no_indexer_keys() -> None:
    """GLM-5.2 keeps index keys in its 'full' indexer layers only."""
    model = load_model("glm-5.2")
    indexers = sum(count for count, each in model.attentions() if each.index_width)

    assert kv_bytes_per_token(model, BF16) == 78 * 1152 + indexers * 132
    assert 0 < indexers < 78


@given(st.sampled_from(model_names()), st.integers(0, 5))
def test_ranks_hold_all_of_it_together(name: str, power: int) -> None:
    """All ranks together hold at least what one would; none holds more than one alone, or less than its share."""
    model, ranks = load_model(name), 2**power
    alone, each = kv_bytes_per_token(model, BF16), kv_bytes_per_token_per_rank(model, BF16, ranks)

    assert alone / ranks <= each <= alone


@given(st.sampled_from(model_names()), st.integers(0, 300_000), st.integers(1, 8192))
def test_a_sequence_grows_with_its_context(name: str, context: int, new_tokens: int) -> None:
    """KV never shrinks as the context grows, and never exceeds every layer counted in full."""
    model = load_model(name)
    held = kv_bytes(model, context, BF16, new_tokens=new_tokens)

    assert held <= kv_bytes(model, context + 1, BF16, new_tokens=new_tokens)
    assert held <= context * kv_bytes_per_token(model, BF16) + state_bytes_per_sequence(model)


@given(st.sampled_from(model_names()))
def test_what_is_read_of_a_token_is_what_is_kept(name: str) -> None:
    """The bytes read with and without limit are together those that a token takes."""
    model = load_model(name)
    read = sum(kv_read_bytes_per_token(model, BF16, windowed=windowed) for windowed in (True, False))

    assert read == pytest.approx(kv_bytes_per_token(model, BF16))


def test_bytes_shrink_with_the_format() -> None:
    """An 8-bit cache is half a 16-bit one where no layout of its own applies."""
    model = parse_config(SMALL, name="small")

    assert kv_bytes_per_token(model, FP8) * 2 == kv_bytes_per_token(model, BF16)


SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 100,
}
