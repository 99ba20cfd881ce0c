"""config.json -> DecoderConfig: published counts, transformers' own reading, refusals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

transformers = pytest.importorskip("transformers")

from servewise.engine.checkpoints.expected import expected_weights, parameters  # noqa: E402
from servewise.engine.checkpoints.hf_config import (  # noqa: E402
    config_of_folder,
    generation_config,
    hf_config,
    parse_config,
)
from servewise.engine.checkpoints.rope import rope_of_stretches, stretches  # noqa: E402
from servewise.engine.config import DecoderConfig, RopeConfig  # noqa: E402
from servewise.errors import InputError  # noqa: E402
from servewise.modelspec.catalogue import entries  # noqa: E402

# Parameters as the hub counts each repository's safetensors (model cards, 2026-11); tied tables once.
PUBLISHED = {
    "llama-2-7b": 6_738_415_616,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "mistral-7b-v0.1": 7_241_732_096,
    "mistral-nemo": 12_247_782_400,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-8b": 8_190_735_360,
    "smollm2-135m": 134_515_008,
}
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 320,
    "max_position_embeddings": 512,
}
STRETCH = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def parse(**more: Any) -> DecoderConfig:
    """The tiny llama with ``more`` over it."""
    return parse_config(LLAMA | more, {}, name="tiny", where="config.json")


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_sum_to_the_published_parameters(name: str) -> None:
    """The shapes that a real config asks for sum to the count that the hub publishes, exactly."""
    config = parse_config(entries()[name].config, {}, name=name)

    assert parameters(config) == PUBLISHED[name]


def test_unsupported_architectures_are_refused_by_name_with_what_is_supported() -> None:
    """Every config of the catalogue is either read or refused in one line that names it and what is read."""
    read = set()
    for name, entry in entries().items():
        try:
            read.add(parse_config(entry.config, {}, name=name).family)
        except InputError as error:
            said = str(error)
            known = repr(entry.config["model_type"]) in said and "llama" in said and "qwen3" in said
            assert known or "quantization_config" in said, said

    assert read == {"llama", "mistral", "qwen2", "qwen3"}


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_names_and_shapes_are_those_of_transformers(family: str) -> None:
    """The weights that we ask for are the state dict of transformers' model of the same config."""
    classes = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
    torch = pytest.importorskip("torch")
    more = {"attention_bias": True, "mlp_bias": True} if family == "llama" else {}
    content = LLAMA | {"model_type": family, "head_dim": 16} | more
    theirs = getattr(transformers, f"{classes[family]}Config")(**content)
    with torch.device("meta"):
        model = getattr(transformers, f"{classes[family]}ForCausalLM")(theirs)

    ours = expected_weights(parse_config(content, {}, name="tiny"))

    assert ours == {name: tuple(weight.shape) for name, weight in model.state_dict().items()}


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_silent_fields_take_transformers_defaults(family: str) -> None:
    """Left out, kv heads, epsilon, theta, tying, window and biases are what transformers' config class takes."""
    content = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    content |= {"model_type": family, "num_attention_heads": 32, "hidden_size": 512}
    theirs = transformers.AutoConfig.for_model(**content)

    ours = parse_config(content, {}, name="tiny")

    assert ours.kv_heads == theirs.num_key_value_heads
    assert ours.norm_epsilon == theirs.rms_norm_eps
    assert ours.rope.theta == theirs.rope_parameters["rope_theta"]
    assert ours.tied == theirs.tie_word_embeddings
    assert ours.window_tokens == getattr(theirs, "sliding_window", None)
    assert ours.head_dim == (getattr(theirs, "head_dim", None) or 512 // 32)


def test_both_layouts_of_rope_settings_are_read_alike() -> None:
    """rope_theta with rope_scaling, and rope_parameters of transformers 5, give one RopeConfig."""
    old = parse(rope_theta=500000.0, rope_scaling=STRETCH)
    new = parse(rope_parameters=STRETCH | {"rope_theta": 500000.0})

    assert old.rope == new.rope
    assert (old.rope.theta, old.rope.factor, old.rope.original_context_tokens) == (500000.0, 8.0, 8192)


def test_stretches_are_the_ratio_of_transformers_frequencies() -> None:
    """Llama 3's stretch of each wavelength equals plain over scaled inverse frequency as transformers computes it."""
    pytest.importorskip("torch")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = transformers.LlamaConfig(
        **(LLAMA | {"head_dim": 128, "max_position_embeddings": 131072}),
        rope_parameters=STRETCH | {"rope_theta": 500000.0},
    )
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = 500000.0 ** -(np.arange(0, 128, 2) / 128)
    rope = RopeConfig(theta=500000.0, dimensions=128, factor=8.0)

    found = stretches(rope)

    assert found == pytest.approx(plain / scaled.numpy(), rel=1e-5)
    assert (found[0], found[-1]) == (1.0, 8.0)
    assert rope_of_stretches(found, 500000.0, 128, "file") == rope


def test_end_tokens_of_both_files_count() -> None:
    """generation_config's end tokens come first, config.json's are added, repeats and order kept."""
    config = parse_config(LLAMA | {"eos_token_id": 2}, {"eos_token_id": [7, 2, 9]}, name="tiny")

    assert config.end_tokens == (7, 2, 9)


def test_windows_hold_for_all_layers_or_are_refused() -> None:
    """Mistral's window, its absence (null) and its default; Qwen's window in all, no or some layers."""
    mistral = LLAMA | {"model_type": "mistral"}
    qwen = LLAMA | {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 256}

    assert parse_config(mistral, {}, name="m").window_tokens == 4096
    assert parse_config(mistral | {"sliding_window": None}, {}, name="m").window_tokens is None
    assert parse_config(qwen | {"max_window_layers": 2}, {}, name="q").window_tokens is None
    assert parse_config(qwen | {"max_window_layers": 0}, {}, name="q").window_tokens == 256
    with pytest.raises(InputError, match="mixes layers with and without a sliding window"):
        parse_config(qwen | {"max_window_layers": 1}, {}, name="q")


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_written_configs_read_back_the_same(family: str) -> None:
    """hf_config and generation_config give the DecoderConfig again, and transformers accepts the former."""
    content = LLAMA | {"model_type": family, "eos_token_id": [2, 5], "bos_token_id": 1, "tie_word_embeddings": True}
    config = parse_config(content, {}, name="tiny")
    written = hf_config(config, "bfloat16")

    assert parse_config(written, generation_config(config), name="tiny") == config
    assert transformers.AutoConfig.for_model(**written).num_hidden_layers == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"model_type": "gemma3"}, "architecture 'gemma3' is not computed by the engine; read are llama"),
        ({"model_type": None, "architectures": ["FooLM"]}, "architecture 'FooLM'"),
        ({"model_type": None}, "missing field model_type"),
        ({"hidden_size": None, "vocab_size": None}, "missing fields hidden_size, vocab_size"),
        ({"hidden_size": "64"}, "hidden_size must be a whole number, not '64'"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers must be from 1 to 4096"),
        ({"num_key_value_heads": 3}, "4 heads cannot share 3 key-value heads"),
        ({"head_dim": 15}, "cannot be rotated in pairs"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu' is not computed"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps must be a number above zero"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope scaling 'yarn' is not computed"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope scaling 'linear' is not computed"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "missing fields low_freq_factor"),
        ({"rope_scaling": STRETCH | {"high_freq_factor": 1.0}}, "high_freq_factor > low_freq_factor"),
        ({"partial_rotary_factor": 0.5}, "rotates only 0.5 of each head"),
        ({"quantization_config": {"quant_method": "gptq"}}, "weights are quantised"),
        ({"eos_token_id": 320}, "eos_token_id must be a token from 0 to 319"),
        ({"eos_token_id": ["a"]}, "eos_token_id must be a token"),
        ({"bos_token_id": -1}, "bos_token_id must be from 0 to 319"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings must be true or false"),
    ],
)
def test_what_cannot_be_computed_is_refused(more: dict[str, Any], said: str) -> None:
    """Each is one line that names the field and what it should be."""
    with pytest.raises(InputError) as caught:
        parse(**more)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, '{"model_type": "llama", "hidden_size": 1e999}'])
def test_hostile_files_are_one_line(content: str, tmp_path: Path) -> None:
    """What is no config ends in an InputError that names the file."""
    (tmp_path / "config.json").write_text(content)

    with pytest.raises(InputError, match=r"config\.json"):
        config_of_folder(tmp_path)


def test_expected_parameters_count_a_tied_table_once() -> None:
    """Tied, the tiny llama lacks lm_head: 320 x 64 fewer."""
    assert parameters(parse()) - parameters(parse(tie_word_embeddings=True)) == 320 * 64
    assert math.prod(expected_weights(parse())["model.layers.1.self_attn.k_proj.weight"]) == 32 * 64
