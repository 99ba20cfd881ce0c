"""Xiaomi's MiMo: the dense 7B, and V2 Flash with wider keys than values and other KV heads in its windowed layers."""

from __future__ import annotations

from servewise.modelspec.families.attention import Heads, grouped_query, windowed_layers
from servewise.modelspec.families.llama import Style, llama_like
from servewise.modelspec.families.mixtures import deepseek_experts, dense_first
from servewise.modelspec.families.network import Network, drafting_layers, grouped, layer_count
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import Attention


def mimo(fields: Fields) -> Network:
    """MiMo-7B: Qwen 2's layers with a head of its own (its drafting layer is not counted)."""
    return llama_like(fields, Style(qkv_bias=True, out_bias=False))


def mimo_v2_flash(fields: Fields) -> Network:
    """MiMo-V2-Flash: five windowed layers to a full one, a learned sink a head in the windowed ones."""
    count, hidden = layer_count(fields), fields.count("hidden_size")
    windowed = _attention(fields, "swa_", fields.count("sliding_window"))
    full = _attention(fields, "", None)
    parts = dense_first(fields, deepseek_experts(fields, shared_default=0), 1)
    windows = _windows(fields, count)
    return Network(
        layers=grouped(
            (windowed if each else full, part, 2 * hidden) for each, part in zip(windows, parts, strict=True)
        ),
        tied=fields.flag("tie_word_embeddings", default=False),
        final_norm_parameters=hidden,
        uncounted=drafting_layers(fields),
    )


def _attention(fields: Fields, prefix: str, window: int | None) -> Attention:
    size = Heads(
        hidden=fields.count("hidden_size"),
        heads=fields.count(f"{prefix}num_attention_heads"),
        kv_heads=fields.count(f"{prefix}num_key_value_heads"),
        head_dim=fields.count(f"{prefix}head_dim"),
        value_dim=fields.count(f"{prefix}v_head_dim"),
    )
    bias = fields.flag("attention_bias", default=False)
    return grouped_query(size, qkv_bias=bias, window_tokens=window, extra_parameters=size.heads if window else 0)


def _windows(fields: Fields, count: int) -> list[bool]:
    """``layer_types``, or ``hybrid_layer_pattern``: 1 for a windowed layer, 0 for a full one."""
    pattern = fields.listed("hybrid_layer_pattern", count)
    if pattern is None and not fields.has("layer_types"):
        fields.missing("hybrid_layer_pattern")
    return windowed_layers(fields, count, default=[each == 1 for each in pattern or [0] * count])
