"""Hugging Face configs: defaults of each family, nesting, refusals, and anything hostile."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.modelspec.catalogue import entries
from servewise.modelspec.families.table import ARCHITECTURES, FAMILIES
from servewise.modelspec.hf_config import parse_config, parse_text
from servewise.modelspec.spec import AttentionKind, ModelSpec

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 100,
}
DENSE = 3 * 64 * 96


def parsed(**changes: Any) -> ModelSpec:
    """The small Llama with fields changed; None takes a field away."""
    merged = {key: value for key, value in (LLAMA | changes).items() if value is not None}
    return parse_config(merged, name="small")


def test_a_llama_is_counted_by_hand() -> None:
    """4 attention matrices, 3 feed-forward ones, two norms a layer; table, head, final norm."""
    assert parsed().parameters == 2 * (4 * 64 * 64 + DENSE + 2 * 64) + 2 * 100 * 64 + 64


def test_kv_heads_shrink_two_matrices() -> None:
    """With 1 KV head of 16 the key and value matrices are 64 x 16."""
    assert parsed(num_key_value_heads=1).layers[0].attention.parameters == 2 * 64 * 64 + 2 * 64 * 16


def test_biases_are_counted() -> None:
    """attention_bias adds one to q, k, v and output; mlp_bias one to gate, up and down."""
    more = parsed(attention_bias=True, mlp_bias=True).parameters - parsed().parameters

    assert more == 2 * (4 * 64 + 2 * 96 + 64)


def test_a_tied_head_is_counted_once() -> None:
    """tie_word_embeddings drops the head."""
    assert parsed().parameters - parsed(tie_word_embeddings=True).parameters == 100 * 64


def test_qwen2_has_biases_on_q_k_v_only() -> None:
    """Qwen 2 adds a bias to q, k and v and none to the output."""
    more = parsed(model_type="qwen2", num_key_value_heads=4).parameters - parsed().parameters

    assert more == 2 * 3 * 64


def test_qwen3_has_a_norm_a_head() -> None:
    """Qwen 3 adds two norms of the head's width, which is 128 where the config is silent."""
    attention = parsed(model_type="qwen3", num_key_value_heads=4).layers[0].attention

    assert attention.head_dim == 128
    assert attention.parameters == 4 * 64 * 4 * 128 + 2 * 128


def test_gemma_is_tied_with_heads_of_256() -> None:
    """Gemma's defaults: a tied head, heads of 256."""
    model = parsed(model_type="gemma", num_key_value_heads=4)

    assert model.tied
    assert model.layers[0].attention.head_dim == 256


def test_mistral_without_a_window_field_has_4096() -> None:
    """Mistral's default window is 4,096; null means none, and so does a window the context never reaches."""
    kinds = [
        parsed(model_type="mistral", num_key_value_heads=4, **fields).window_tokens
        for fields in ({}, {"sliding_window": 7}, {"max_position_embeddings": 4096})
    ]
    none = parse_config(LLAMA | {"model_type": "mistral", "num_key_value_heads": 4, "sliding_window": None}, name="m")

    assert [*kinds, none.window_tokens] == [4096, 7, None, None]


def test_gemma2_and_gemma3_alternate_windows() -> None:
    """Gemma 2 has a window in every second layer from the first; Gemma 3 in five of six."""
    gemma2 = parsed(model_type="gemma2", num_hidden_layers=12)
    gemma3 = parsed(model_type="gemma3_text", num_hidden_layers=12)

    windowed = [sum(count for count, each in model.attentions() if each.window_tokens) for model in (gemma2, gemma3)]
    assert windowed == [6, 10]


def test_llama4_has_chunks_in_three_of_four_layers() -> None:
    """Every fourth layer of Llama 4 attends to everything, the others within their chunk."""
    model = parse_config(entries()["llama-4-scout-17b-16e"].config, name="scout")
    kinds = {each.kind: count for count, each in model.attentions()}

    assert kinds == {AttentionKind.CHUNKED: 36, AttentionKind.FULL: 12}
    assert model.window_tokens == 8192


def test_nested_configs_are_read() -> None:
    """A text_config is read as the model, the outer dtype and tie apply, the unknown tower is named."""
    text = {key: value for key, value in LLAMA.items() if key != "vocab_size"} | {"vocab_size": 100}
    outer = {
        "model_type": "some_vlm",
        "text_config": text,
        "vision_config": {"model_type": "other"},
        "torch_dtype": "float16",
        "tie_word_embeddings": True,
    }

    model = parse_config(outer, name="nested")

    assert model.tied
    assert model.dtype.name == "fp16"
    assert model.uncounted == ("vision tower",)


def test_a_nested_config_may_leave_out_its_classes_defaults() -> None:
    """Gemma-3-4B's published text_config states neither heads nor vocabulary; LLaVA-1.5-7B's only its vocabulary."""
    gemma = {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
    }
    llava = {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32_064}}

    assert parse_config(gemma, name="gemma").layers == parse_config(entries()["gemma-3-4b"].config, name="x").layers
    assert parse_config(llava, name="llava").parameters == 6_738_415_616 + 2 * 64 * 4096


def test_experts_are_counted_whole_and_active() -> None:
    """Mixtral: 8 experts of three matrices, 2 active, a router of hidden x 8."""
    model = parsed(model_type="mixtral", num_key_value_heads=4, num_local_experts=8, num_experts_per_tok=2)
    part = model.layers[0].feed_forward

    assert part.parameters == 8 * DENSE + 8 * 64
    assert part.active_parameters == 2 * DENSE + 8 * 64


def test_a_config_without_model_type_goes_by_its_architecture() -> None:
    """``architectures`` alone is enough where it names one family."""
    assert parsed(model_type=None, architectures=["LlamaForCausalLM"]).family == "llama"


def test_architectures_lead_to_known_families() -> None:
    """Each architecture name maps to a reader that exists."""
    assert set(ARCHITECTURES.values()) <= set(FAMILIES)


def test_missing_fields_are_all_named() -> None:
    """One line names every field that is missing."""
    with pytest.raises(InputError, match=r"missing fields .*hidden_size.*intermediate_size.*vocab_size"):
        parse_config({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4}, name="bare")


def test_partial_facts_are_refused_with_what_they_lack() -> None:
    """A config with MLA widths only is refused, naming what is needed to count it."""
    partial = {"model_type": "deepseek_v2", "kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128}

    with pytest.raises(InputError) as caught:
        parse_config(partial, name="partial")

    for name in ("hidden_size", "num_hidden_layers", "qk_nope_head_dim", "n_routed_experts", "moe_intermediate_size"):
        assert name in str(caught.value)


@pytest.mark.parametrize("model_type", ["deepseek_v4", "minimax_m3", "step3p7", "nemotron-nas", "bert"])
def test_an_unknown_architecture_is_refused_by_name(model_type: str) -> None:
    """What no reader counts is refused, with the families that are known."""
    with pytest.raises(InputError, match=rf"{model_type}.*known: .*llama"):
        parsed(model_type=model_type)


def test_an_unknown_model_type_is_not_guessed_from_its_architecture() -> None:
    """A model_type of its own may change the widths, so the architecture's name does not overrule it."""
    with pytest.raises(InputError, match="my_llama"):
        parsed(model_type="my_llama", architectures=["LlamaForCausalLM"])


HOSTILE = [-1, 0, math.nan, math.inf, 1.5, "64", True, [], {}, 10**30, 10**4000, -(10**4000)]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: f"{str(value)[:12]}" if isinstance(value, float) else None)
@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "head_dim"]
)
def test_wrong_values_are_refused_by_name(field: str, value: object) -> None:
    """A width that is negative, no whole number or absurd is refused with the field's name."""
    with pytest.raises(InputError, match=field) as caught:
        parsed(**{field: value})

    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "changes",
    [
        {"num_key_value_heads": 3},
        {"num_attention_heads": 5},
        {"num_hidden_layers": 10**6},
        {"tie_word_embeddings": "yes"},
        {"torch_dtype": "float13"},
        {"torch_dtype": 16},
        {"model_type": ["llama"]},
        {"text_config": [1]},
        {"quantization_config": "fp8"},
        {"model_type": "mixtral", "num_key_value_heads": 4, "num_local_experts": 2, "num_experts_per_tok": 3},
        {"model_type": "gemma2", "layer_types": ["sliding_attention"]},
        {"model_type": "gemma2", "layer_types": ["sliding_attention", {"a": 1}]},
        {"model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 8,
         "mlp_only_layers": [[0]]},
    ],
)  # fmt: skip
def test_contradictions_are_refused(changes: dict[str, Any]) -> None:
    """Heads that do not divide, lists of a wrong length or kind, settings that are none: one clear line."""
    with pytest.raises(InputError):
        parsed(**changes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        '"llama"',
        "[" * 100_000,
        '{"a":' * 50_000,
        "{" + '"a":1,' * 9 + "}",
        "NaN",
        "1" * 9999,
    ],
)
def test_text_that_is_no_config_is_refused(text: str) -> None:
    """Broken, deeply nested or foreign JSON is an InputError, never a traceback."""
    with pytest.raises(InputError):
        parse_text(text, name="bad")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-3, 40)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([2**31 - 1, 2**31, 10**40, "re:(a+)+$", "full_attention", "M*E-", "NVFP4"]),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=6), each, max_size=3),
    max_leaves=8,
)
CONFIGS = sorted({json.dumps(entry.config, sort_keys=True) for entry in entries().values()})
EXTRA = [
    "quantization_config", "text_config", "vision_config", "layer_types", "sliding_window", "head_dim",
    "moe_layer_freq", "mlp_only_layers", "linear_attn_config", "no_rope_layers", "moe_layers", "indexer_types",
    "hybrid_override_pattern", "num_nextn_predict_layers", "torch_dtype", "architectures", "q_lora_rank",
    "attention_bias", "max_window_layers",
]  # fmt: skip


@settings(max_examples=600, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(CONFIGS), st.data())
def test_mutated_configs_parse_or_are_refused(text: str, data: st.DataObject) -> None:
    """A shipped config with fields changed at random gives a model or an InputError, never anything else."""
    config = json.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        inside = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
        where = data.draw(st.sampled_from([config, inside]))
        name = data.draw(st.sampled_from(sorted(where) + EXTRA))
        if data.draw(st.booleans()):
            where[name] = data.draw(JSON)
        else:
            where.pop(name, None)
    with contextlib.suppress(InputError):
        model = parse_config(config, name="mutated")

        assert model.parameters >= model.active_parameters > 0
        assert model.layer_count <= 4096


@settings(max_examples=200, deadline=2000)
@given(st.dictionaries(st.sampled_from([*LLAMA, *EXTRA]), JSON))
def test_arbitrary_configs_parse_or_are_refused(config: dict[str, Any]) -> None:
    """Any object at all gives a model or an InputError."""
    with contextlib.suppress(InputError):
        parse_config(config, name="arbitrary")


def test_a_hostile_error_stays_one_short_line() -> None:
    """A value with line breaks or of great length does not break the message."""
    with pytest.raises(InputError) as caught:
        parsed(model_type="evil\n" * 1000)

    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2000
