"""Gemma 4: wider heads in the full layers, whose keys are also the values; experts beside a dense part."""

from __future__ import annotations

from servewise.modelspec.families.attention import Heads, grouped_query, read_heads, windowed_layers
from servewise.modelspec.families.feed_forward import gated, mixture
from servewise.modelspec.families.network import Network, grouped, layer_count
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import Attention, FeedForward


def gemma4(fields: Fields) -> Network:
    """Gemma 4 without per-layer embeddings or shared KV layers (26B-A4B, 31B)."""
    for name in ("hidden_size_per_layer_input", "num_kv_shared_layers"):
        if fields.count(name, default=256 if name.startswith("hidden") else 0, least=0):
            raise fields.wrong(name, fields.get(name), "0 (per-layer embeddings and shared KV are not counted yet)")
    count, size = layer_count(fields), read_heads(fields, kv_heads=4, head_dim=256)
    windows = windowed_layers(fields, count, default=[(index + 1) % 6 != 0 for index in range(count)])
    windows[-1:] = [False]  # transformers makes the last layer full whatever the list says
    window = fields.count("sliding_window", default=512)
    narrow, full = grouped_query(size, head_norm=True, window_tokens=window), _full_attention(fields, size)
    part, norms = _feed_forward(fields, size.hidden)
    return Network(
        layers=grouped((narrow if each else full, part, norms * size.hidden) for each in windows),
        tied=fields.flag("tie_word_embeddings", default=True),
        final_norm_parameters=size.hidden,
    )


def _full_attention(fields: Fields, size: Heads) -> Attention:
    shared = fields.flag("attention_k_eq_v", default=False)
    width = fields.count("global_head_dim", default=512)
    kv_heads = fields.count("num_global_key_value_heads", default=size.kv_heads) if shared else size.kv_heads
    wide = Heads(hidden=size.hidden, heads=size.heads, kv_heads=kv_heads, head_dim=width, value_dim=width)
    return grouped_query(wide, head_norm=True, keys_are_values=shared)


def _feed_forward(fields: Fields, hidden: int) -> tuple[FeedForward, int]:
    thick = gated(hidden, fields.count("intermediate_size"))
    if not fields.flag("enable_moe_block", default=False):
        return FeedForward(dense_parameters=thick), 4
    experts = fields.count("num_experts")
    sparse = mixture(
        fields,
        experts=experts,
        per_token=fields.count("top_k_experts"),
        expert_parameters=gated(hidden, fields.count("moe_intermediate_size")),
        shared_parameters=thick + hidden + experts,  # the dense part, the router's scales
    )
    return sparse, 7
