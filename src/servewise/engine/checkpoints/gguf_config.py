"""A GGUF file's metadata -> DecoderConfig; switches that GGUF does not state are read from which tensors there are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from servewise.engine.checkpoints.gguf_header import GgufHeader
from servewise.engine.checkpoints.gguf_tokenizer import CONTROL
from servewise.engine.checkpoints.hf_config import checked
from servewise.engine.checkpoints.rope import PLAIN, positive, rope_of_stretches
from servewise.engine.config import DecoderConfig, RopeConfig
from servewise.errors import InputError
from servewise.modelspec.fields import MOST_LAYERS, Fields

ARCHITECTURES = ("llama", "qwen2", "qwen3")
SUPPORTED = "read are llama (Llama 2 and 3, Mistral, SmolLM2), qwen2 (and 2.5) and qwen3"
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
# Control tokens that end a turn in the families read here; llama.cpp ends a reply at them whether or not a key above
# names them (llama-vocab.cpp, special_eog_ids), since early instruct files name only the end of a text.
TURN_ENDS = ("<|eot_id|>", "<|im_end|>")
_LAYER = re.compile(r"blk\.(\d+)\..*")


def config_of_gguf(header: GgufHeader, stretches: np.ndarray | None, *, name: str) -> DecoderConfig:
    """The decoder that the file describes; ``stretches`` is its ``rope_freqs.weight``, if it has one.

    Raises InputError for another architecture, a mixture of experts, and rope scalings that are not computed.
    """
    architecture = header.metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        what = f"architecture {str(architecture)[:60]!r} is not computed by the engine"
        raise InputError(what, where=header.where, hint=SUPPORTED)
    fields = _fields(header, architecture)
    table = header.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        raise InputError("has no embedding table token_embd.weight", where=header.where)
    hidden, heads = fields.count("embedding_length"), fields.count("attention.head_count")
    head_dim = fields.count("attention.key_length", default=max(1, hidden // heads))
    has = header.tensors.__contains__
    window = fields.count("attention.sliding_window") if fields.has("attention.sliding_window") else None
    decoder = DecoderConfig(
        name=name,
        family="mistral" if architecture == "llama" and window else architecture,
        hidden=hidden,
        layers=fields.count("block_count", most=MOST_LAYERS),
        heads=heads,
        kv_heads=fields.count("attention.head_count_kv", default=heads),
        head_dim=head_dim,
        intermediate=fields.count("feed_forward_length"),
        vocabulary=table.shape[0],
        max_context_tokens=fields.count("context_length"),
        norm_epsilon=positive(fields, "attention.layer_norm_rms_epsilon"),
        rope=_rope(fields, head_dim, stretches),
        tied=not has("output.weight"),
        qkv_bias=has("blk.0.attn_q.bias"),
        output_bias=has("blk.0.attn_output.bias"),
        mlp_bias=has("blk.0.ffn_up.bias"),
        qk_norm=architecture == "qwen3",
        window_tokens=window,
        begin_token=_tokens(header, ("bos_token_id",), table.shape[0])[0],
        end_tokens=_ends(header, table.shape[0]),
    )
    fields.check()
    return checked(_consistent(decoder, header), header.where)


def _fields(header: GgufHeader, architecture: str) -> Fields:
    """The entries of the architecture, without its prefix; lists with one value a layer become that value."""
    start = architecture + "."
    values = {key.removeprefix(start): _same(value) for key, value in header.metadata.items() if key.startswith(start)}
    fields = Fields(values, f"{header.where}: {architecture}")
    if fields.count("expert_count", default=0, least=0):
        raise InputError("is a mixture of experts, which the engine does not compute", where=fields.where)
    for name in ("key_length", "value_length"):
        if values.get(f"attention.{name}", 0) != values.get("attention.key_length", 0):
            raise InputError("has keys and values of different length, which is not computed", where=fields.where)
    return fields


def _same(value: Any) -> Any:
    """The value that all items of a list share, else the list (which ``Fields`` refuses where a number is needed)."""
    return value[0] if isinstance(value, list) and value and all(each == value[0] for each in value) else value


def _rope(fields: Fields, head_dim: int, stretches: np.ndarray | None) -> RopeConfig:
    theta = positive(fields, "rope.freq_base", 10_000.0)
    if fields.count("rope.dimension_count", default=head_dim) != head_dim:
        raise InputError("rotates only part of each head, which is not computed", where=fields.where)
    kind = fields.text("rope.scaling.type", default="none")
    legacy = positive(fields, "rope.scale_linear", 1.0)
    if kind not in PLAIN and not (kind == "linear" and positive(fields, "rope.scaling.factor", 1.0) == 1.0):
        hint = "plain and llama3 (rope_freqs.weight) are computed"
        raise InputError(f"rope scaling {kind[:40]!r} is not computed", where=fields.where, hint=hint)
    if legacy != 1.0:
        raise InputError("rope scaling 'linear' is not computed", where=fields.where)
    if stretches is None:
        return RopeConfig(theta=theta, dimensions=head_dim)
    return rope_of_stretches(stretches, theta, head_dim, fields.where)


def _tokens(header: GgufHeader, keys: tuple[str, ...], vocabulary: int) -> list[int | None]:
    """The special tokens of ``keys``, without repeats; None for those that the file does not state."""
    fields = Fields(header.metadata, header.where)
    found: dict[int | None, None] = {}
    for key in keys:
        name = f"tokenizer.ggml.{key}"
        found[fields.count(name, least=0, most=vocabulary - 1) if fields.has(name) else None] = None
    return list(found)


def _ends(header: GgufHeader, vocabulary: int) -> tuple[int, ...]:
    named = [each for each in _tokens(header, END_KEYS, vocabulary) if each is not None]
    texts, kinds = (header.metadata.get(f"tokenizer.ggml.{key}") for key in ("tokens", "token_type"))
    if not isinstance(texts, list) or not isinstance(kinds, list):
        return tuple(named)
    places = [texts.index(each) for each in TURN_ENDS if each in texts]
    return tuple(dict.fromkeys((*named, *(each for each in places if kinds[each : each + 1] == [CONTROL]))))


def _consistent(config: DecoderConfig, header: GgufHeader) -> DecoderConfig:
    """``config``, if its biases are ones that its family has, and no layer lies beyond its count."""
    legal = {"llama": config.qkv_bias == config.output_bias, "qwen2": config.qkv_bias and not config.output_bias}
    if not legal.get(config.family, config.qkv_bias == config.output_bias):
        raise InputError(f"has attention biases that no {config.family} has", where=header.where)
    beyond = [name for name in header.tensors if (found := _LAYER.fullmatch(name)) and int(found[1]) >= config.layers]
    if beyond:
        raise InputError(f"has {beyond[0][:80]!r} beyond its {config.layers} layers", where=header.where)
    return config
