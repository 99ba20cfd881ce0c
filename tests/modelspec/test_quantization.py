"""Storage formats: effective bits with their scales, and which parts a checkpoint leaves alone."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.modelspec.hf_config import parse_config
from servewise.modelspec.load import load_model
from servewise.modelspec.quantization import METHODS
from servewise.modelspec.spec import ModelSpec, WeightPart
from servewise.modelspec.weights import part_bytes, part_parameters, weight_bytes
from servewise.units import GIB

MOE: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "vocab_size": 100,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}


def stored(**settings: Any) -> ModelSpec:
    """A small mixture with this quantization_config."""
    return parse_config(MOE | {"quantization_config": settings}, name="small")


def groups(**weights: Any) -> dict[str, Any]:
    """A compressed-tensors config of one group."""
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


@pytest.mark.parametrize(
    ("settings", "name", "bits"),
    [
        ({"quant_method": "fp8"}, "fp8", 8),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4", 4 + 20 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", 8),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, "int4", 4 + 20 / 64),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", 4.5),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            "int4",
            4.127,  # Dettmers et al. 2023: 0.127 bits a parameter
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 4.5),
        (groups(num_bits=8, type="float"), "fp8", 8),
        (groups(num_bits=4, type="int", group_size=32, symmetric=True), "int4", 4.5),
        (groups(num_bits=4, type="float", group_size=16), "nvfp4", 4.5),
        (groups(num_bits=4, type="float", group_size=32), "mxfp4", 4.25),
    ],
)
def test_effective_bits_hold_the_scales(settings: dict[str, Any], name: str, bits: float) -> None:
    """Each method's bits are its own plus those of scales and zero points."""
    model = stored(**settings)

    assert model.weights.name == name
    assert model.weights.bits == pytest.approx(bits, abs=5e-4)


@pytest.mark.parametrize(
    ("listed", "left"),
    [
        (["lm_head"], set()),
        (["re:.*self_attn.*", "lm_head"], {WeightPart.ATTENTION}),
        (["self_attn"], {WeightPart.ATTENTION}),
        ([f"model.layers.{layer}.self_attn.q_proj" for layer in range(4)], {WeightPart.ATTENTION}),
        (["model.layers.0.self_attn.q_proj"], set()),  # one layer of four is not the part
        ([f"model.language_model.layers.{layer}.mlp.experts*" for layer in range(4)], {WeightPart.EXPERTS}),
        ([f"model.layers.{layer}.mlp.gate" for layer in range(4)], set()),  # the router is not the gate matrix
        (["model.layers.*.mlp.shared_experts*"], {WeightPart.FEED_FORWARD}),
        (["re:(a+)+$", "re:(", "re:" + ".*" * 50 + "Z"], set()),  # hostile expressions neither match nor hang
    ],
)
@pytest.mark.parametrize("key", ["modules_to_not_convert", "ignore", "exclude_modules"])
def test_excluded_modules_keep_their_dtype(key: str, listed: list[str], left: set[WeightPart]) -> None:
    """A part is left at 16 bits when its modules are listed in at least half of the layers."""
    model = stored(quant_method="fp8", **{key: listed})
    sizes, counts = part_bytes(model), part_parameters(model)

    for part in (WeightPart.ATTENTION, WeightPart.FEED_FORWARD, WeightPart.EXPERTS):
        assert sizes[part] == counts[part] * (2 if part in left else 1)


def test_mixed_precision_gives_each_part_its_own() -> None:
    """ModelOpt's mixture: fp8 attention, nvfp4 experts, the rest at 16 bits."""
    layers = {f"model.layers.{layer}.self_attn.q_proj": {"quant_algo": "FP8"} for layer in range(4)}
    layers |= {f"model.layers.{layer}.mlp.experts.0.up_proj": {"quant_algo": "NVFP4"} for layer in range(4)}

    model = stored(quant_method="modelopt", quant_algo="MIXED_PRECISION", quantized_layers=layers)

    sizes, counts = part_bytes(model), part_parameters(model)
    assert model.weights.name == "nvfp4"
    assert sizes[WeightPart.ATTENTION] == counts[WeightPart.ATTENTION]
    assert sizes[WeightPart.EXPERTS] == counts[WeightPart.EXPERTS] * 4.5 / 8
    assert sizes[WeightPart.FEED_FORWARD] == counts[WeightPart.FEED_FORWARD] * 2


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"quant_method": "quip"}, "quip"),
        ({}, "quant_method"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quantized_layers"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": {}}}, "quant_algo"),
        ({"quant_method": "modelopt", "quant_algo": "W2A2"}, "W2A2"),
        ({"quant_method": "gptq"}, "bits"),
        ({"quant_method": "gptq", "bits": 7}, "7-bit"),
        ({"quant_method": "gptq", "bits": "4"}, "bits"),
        ({"quant_method": "compressed-tensors"}, "config_groups"),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {}}}, "weights"),
        (groups(num_bits=4, type="complex"), "type"),
        ({"quant_method": "fp8", "ignore": [f"re:{number}" for number in range(999)]}, "regular expressions"),
    ],
)
def test_unknown_settings_are_refused(settings: dict[str, Any], named: str) -> None:
    """What is not known about the weights is refused by name, never taken for 16 bits."""
    with pytest.raises(InputError, match=named):
        stored(**(settings or {"anything": 1}))


KEYS = [
    "quant_method",
    "quant_algo",
    "bits",
    "w_bit",
    "group_size",
    "config_groups",
    "ignore",
    "exclude_modules",
    "quantized_layers",
    "load_in_4bit",
    "bnb_4bit_use_double_quant",
    "modules_to_not_convert",
]
SETTINGS = st.dictionaries(
    st.sampled_from(KEYS),
    st.sampled_from([*METHODS, "NVFP4", "MIXED_PRECISION", 4, -1, 0, True, None, [], ["re:["], [3], {}, 1e9])
    | st.dictionaries(
        st.sampled_from(["group_0", "lm_head", "experts"]),
        st.dictionaries(
            st.sampled_from(["weights", "quant_algo", "input_activations"]),
            st.sampled_from(["FP8", None, {"num_bits": 4}, {"num_bits": 8, "type": "float"}, {"num_bits": "x"}, 3]),
        )
        | st.integers(),
    ),
)


@given(SETTINGS)
def test_any_settings_are_read_or_refused(settings: dict[str, Any]) -> None:
    """No quantization_config ends in anything but a format of 1 to 64 bits or an InputError."""
    with contextlib.suppress(InputError):
        assert 1 <= stored(**settings).weights.bits <= 64


def test_gpt_oss_parts_are_those_of_its_model_card() -> None:
    """gpt-oss: experts, attention, tables and checkpoint size of the model card (arXiv 2508.10925, table 1)."""
    stated = {"gpt-oss-120b": (114.71, 0.96, 1.16, 60.8), "gpt-oss-20b": (19.12, 0.64, 1.16, 12.8)}

    for name, (mlp, attention, tables, gib) in stated.items():
        model = load_model(name)
        counts = part_parameters(model)
        experts = counts[WeightPart.EXPERTS] + counts[WeightPart.FEED_FORWARD]
        assert experts / 1e9 == pytest.approx(mlp, abs=0.006)
        assert counts[WeightPart.ATTENTION] / 1e9 == pytest.approx(attention, abs=0.006)
        assert (counts[WeightPart.EMBEDDING] + counts[WeightPart.HEAD]) / 1e9 == pytest.approx(tables, abs=0.006)
        # The experts' biases, 0.3 per mille of them, stay at 16 bits and are counted at 4.25: 0.1% of the bytes.
        assert weight_bytes(model) / GIB == pytest.approx(gib, rel=0.002)


def test_deepseek_stores_fp8_as_its_checkpoint_does() -> None:
    """DeepSeek-V3 holds 680,571,043,840 fp8 values (hub API), one drafting layer's matrices among them.

    We count as quantised the routers with their score corrections and MLA's two norms as well, 0.02%.
    """
    model = load_model("deepseek-v3")
    attention = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    drafting = attention + 257 * 3 * 7168 * 2048
    unquantised = 58 * (256 * 7168 + 256) + 61 * (1536 + 512)

    assert model.quantised_parameters == 680_571_043_840 - drafting + unquantised
