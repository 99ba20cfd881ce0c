"""GGUF headers: exact counts and bytes, every architecture's cache, and files that are broken."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.modelspec.gguf_writer import F16, F32, LLAMA, MXFP4, Q4_0, Q8_0, gguf, llama_tensors, size_of

from servewise.errors import InputError
from servewise.modelspec.gguf import parse_header
from servewise.modelspec.gguf_model import read_gguf, to_model
from servewise.modelspec.kv import kv_bytes_per_token, state_bytes_per_sequence
from servewise.modelspec.load import load_model
from servewise.modelspec.spec import AttentionKind, ModelSpec, WeightPart
from servewise.modelspec.weights import part_bytes, weight_bytes
from servewise.precision import FORMATS

BF16 = FORMATS["bf16"]
LAYER = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96  # matrices of one layer of the tiny Llama


def model(metadata: dict[str, object], tensors: dict[str, tuple[tuple[int, ...], int]], version: int = 3) -> ModelSpec:
    """The model of a header made of these."""
    return to_model(parse_header(gguf(metadata, tensors, version), "test.gguf"), "test")


@pytest.mark.parametrize("version", [2, 3])
def test_counts_and_bytes_are_the_files_own(version: int) -> None:
    """Parameters and bytes are the tensors' sums, rotary tables counted as bytes only."""
    tensors = llama_tensors()

    found = model(LLAMA, tensors, version)

    assert found.parameters == 2 * (LAYER + 2 * 64) + 2 * 64 * 128 + 64
    assert weight_bytes(found) == sum(size_of(shape, kind) for shape, kind in tensors.values())
    assert part_bytes(found)[WeightPart.HEAD] == 64 * 128 * 2
    assert (found.vocab_size, found.hidden_size, found.max_context_tokens) == (128, 64, 512)


def test_effective_bits_hold_the_scales() -> None:
    """Q4_0 stores 32 values in 18 bytes: 4.5 bits each; Q8_0 takes 8.5."""
    assert model(LLAMA, llama_tensors(kind=Q4_0)).weights.bits == 4.5
    assert model(LLAMA, llama_tensors(kind=Q8_0)).weights.bits == 8.5


def test_kv_heads_give_the_cache() -> None:
    """2 layers x 2 KV heads of 16, keys and values, 2 bytes."""
    assert kv_bytes_per_token(model(LLAMA, llama_tensors()), BF16) == 2 * 2 * 16 * 2 * 2


def test_kv_heads_may_differ_a_layer() -> None:
    """``head_count_kv`` as an array counts each layer's own heads."""
    metadata = LLAMA | {"llama.attention.head_count_kv": [2, 1]}

    assert kv_bytes_per_token(model(metadata, llama_tensors()), BF16) == (2 + 1) * 16 * 2 * 2


def test_a_tied_head_has_no_parameters() -> None:
    """Without output.weight the head is the embedding."""
    tensors = llama_tensors()
    del tensors["output.weight"]

    assert model(LLAMA, tensors).tied


def test_gpt_oss_has_experts_and_windows() -> None:
    """Every second layer has a window of 128; the experts' tensors hold all experts."""
    metadata = {key.replace("llama.", "gpt-oss."): value for key, value in LLAMA.items()} | {
        "general.architecture": "gpt-oss",
        "gpt-oss.attention.sliding_window": 128,
        "gpt-oss.expert_count": 4,
        "gpt-oss.expert_used_count": 2,
    }
    tensors = {name: each for name, each in llama_tensors().items() if ".ffn_g" not in name and ".ffn_u" not in name}
    for index in range(2):
        tensors[f"blk.{index}.ffn_gate_inp.weight"] = ((64, 4), F32)
        tensors[f"blk.{index}.ffn_up_exps.weight"] = ((64, 96, 4), MXFP4)

    found = model(metadata, tensors)

    kinds = {each.kind: each.window_tokens for _, each in found.attentions()}
    assert kinds == {AttentionKind.SLIDING: 128, AttentionKind.FULL: None}
    part = found.layers[0].feed_forward
    assert (part.experts, part.experts_per_token, part.expert_parameters) == (4, 2, 64 * 96)
    assert part_bytes(found)[WeightPart.EXPERTS] == 2 * 64 * 96 * 4 // 32 * 17


def test_deepseek_keeps_a_latent() -> None:
    """deepseek2 stores kv_lora_rank + rope values a token; files from before 2025-04 whole keys and values."""
    metadata = {key.replace("llama.", "deepseek2."): value for key, value in LLAMA.items()} | {
        "general.architecture": "deepseek2",
        "deepseek2.attention.kv_lora_rank": 32,
        "deepseek2.rope.dimension_count": 8,
        "deepseek2.attention.key_length": 40,
        "deepseek2.attention.value_length": 32,
    }

    split = llama_tensors() | {f"blk.{index}.attn_k_b.weight": ((32, 32, 4), Q8_0) for index in range(2)}

    assert kv_bytes_per_token(model(metadata, split), BF16) == 2 * (32 + 8) * 2
    assert kv_bytes_per_token(model(metadata, llama_tensors()), BF16) == 2 * 2 * (40 + 32) * 2


def test_hybrids_keep_states() -> None:
    """A layer with ssm tensors keeps state_size x inner_size values in fp32 and three inputs of its convolution."""
    metadata = {key.replace("llama.", "qwen3next."): value for key, value in LLAMA.items()} | {
        "general.architecture": "qwen3next",
        "qwen3next.ssm.inner_size": 64,
        "qwen3next.ssm.state_size": 16,
        "qwen3next.ssm.group_count": 2,
        "qwen3next.ssm.conv_kernel": 4,
    }
    tensors = {name: each for name, each in llama_tensors().items() if not name.startswith("blk.0.attn_")}
    tensors |= {"blk.0.attn_norm.weight": ((64,), F32), "blk.0.ssm_in.weight": ((64, 128), F16)}

    found = model(metadata, tensors)

    assert state_bytes_per_sequence(found) == 64 * 16 * 4 + (64 + 2 * 2 * 16) * 3 * 2
    assert kv_bytes_per_token(found, BF16) == 1 * 2 * 16 * 2 * 2


def test_a_file_on_disk_loads_by_its_path(tmp_path: Path) -> None:
    """``load_model`` tells a GGUF by its first bytes."""
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf(LLAMA, llama_tensors()))

    assert load_model(str(path)).name == "tiny"


def test_split_files_are_read_together(tmp_path: Path) -> None:
    """Counts of a split model are those of all parts; a missing part is named."""
    tensors = llama_tensors()
    names = list(tensors)
    parts = [{name: tensors[name] for name in names[:8]}, {name: tensors[name] for name in names[8:]}]
    for number, part in enumerate(parts):
        metadata = (LLAMA if number == 0 else {}) | {"split.count": 2, "split.no": number}
        (tmp_path / f"tiny-{number + 1:05d}-of-00002.gguf").write_bytes(gguf(metadata, part))
    first = tmp_path / "tiny-00001-of-00002.gguf"

    assert read_gguf(first).parameters == model(LLAMA, tensors).parameters

    (tmp_path / "tiny-00002-of-00002.gguf").unlink()
    with pytest.raises(InputError, match=r"tiny-00002-of-00002\.gguf of 2 is missing"):
        read_gguf(first)


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"llama.block_count": None}, "llama.block_count"),
        ({"llama.attention.head_count": None}, "llama.attention.head_count"),
        ({"llama.embedding_length": None}, "llama.embedding_length"),
        ({"general.architecture": None}, "general.architecture"),
        ({"general.architecture": "llamma"}, "nearest: llama"),
        ({"llama.block_count": 9}, "tensors of blk.2"),
        ({"llama.block_count": 4_000_000_000}, "llama.block_count"),
        ({"llama.block_count": "two"}, "llama.block_count"),
        ({"llama.embedding_length": 65}, "token_embd.weight"),
    ],
)
def test_what_is_missing_is_named(metadata: dict[str, object], named: str) -> None:
    """A header that lacks something, or has it wrong, is refused with its name."""
    merged = {key: value for key, value in (LLAMA | metadata).items() if value is not None}

    with pytest.raises(InputError, match=named):
        model(merged, llama_tensors())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), "more than the file holds"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40), "more than the file holds"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62) + b"x" * 40, "name of"),
        (b"GGML" + bytes(40), "does not start"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q3sIIQ", 3, b"key", 9, 9, 1) + bytes(30), "nested"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q3sIIQ", 3, b"key", 9, 4, 2**40), "more than"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q3sII", 3, b"\xff\xfe\xfd", 4, 1), "UTF-8"),
    ],
)
def test_hostile_headers_are_one_line(data: bytes, message: str) -> None:
    """A header that claims what it cannot hold is refused in one line, before anything is read."""
    with pytest.raises(InputError, match=message) as caught:
        parse_header(data, "bad.gguf")

    assert "\n" not in str(caught.value)


def test_an_unknown_tensor_type_is_named() -> None:
    """A type that ggml does not have is refused with the tensor's name."""
    data = bytearray(gguf(LLAMA, {"token_embd.weight": ((64, 128), F16)}))
    data[-12:-8] = struct.pack("<I", 999)

    with pytest.raises(InputError, match=r"token_embd.weight.*type 999"):
        parse_header(bytes(data), "bad.gguf")


def test_every_truncation_is_refused() -> None:
    """Cut anywhere, the header is an InputError and nothing else."""
    data = gguf(LLAMA, llama_tensors())

    for length in range(len(data)):
        with pytest.raises(InputError):
            parse_header(data[:length], "cut.gguf")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_mutated_headers_parse_or_are_refused(data: st.DataObject) -> None:
    """Bytes changed at random give a model or an InputError, never another error."""
    raw = bytearray(gguf(LLAMA, llama_tensors()))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        found = to_model(parse_header(bytes(raw), "fuzzed.gguf"), "fuzzed")

        assert found.parameters > 0
        assert weight_bytes(found) > 0


VALUES = st.one_of(
    st.integers(0, 2**32 - 1),
    st.integers(0, 70),
    st.booleans(),
    st.text(max_size=5),
    st.floats(width=32),
    st.lists(st.integers(-3, 40), min_size=1, max_size=4),
)
KEYS = [
    *(
        f"{{}}.{name}"
        for name in ("block_count", "embedding_length", "expert_count", "expert_used_count", "rope.dimension_count")
    ),
    *(
        f"{{}}.attention.{name}"
        for name in ("head_count", "head_count_kv", "key_length", "value_length", "sliding_window")
    ),
    *(f"{{}}.attention.{name}" for name in ("kv_lora_rank", "key_length_swa", "sliding_window_pattern")),
    *(f"{{}}.ssm.{name}" for name in ("inner_size", "state_size", "group_count", "conv_kernel")),
    "{}.nextn_predict_layers",
    "split.count",
]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["llama", "gpt-oss", "gemma3", "llama4", "deepseek2", "qwen3next"]), st.data())
def test_any_metadata_is_read_or_refused(architecture: str, data: st.DataObject) -> None:
    """Metadata of any kind under the names that are read gives a model or an InputError."""
    metadata = {key.replace("llama.", f"{architecture}."): value for key, value in LLAMA.items()}
    metadata["general.architecture"] = architecture
    for key in data.draw(st.lists(st.sampled_from(KEYS), max_size=4)):
        metadata[key.format(architecture)] = data.draw(VALUES)
    tensors = llama_tensors()
    if data.draw(st.booleans()):
        tensors["blk.0.ssm_in.weight"] = ((64, 128), F16)
        tensors["blk.1.ffn_up_exps.weight"] = ((64, 96, 4), MXFP4)
    with contextlib.suppress(InputError):
        found = model(metadata, tensors)

        assert kv_bytes_per_token(found, BF16) >= 0
        assert found.active_parameters <= found.parameters
