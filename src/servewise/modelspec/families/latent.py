"""Multi-head latent attention (DeepSeek-V2, section 2.1): one compressed vector a token instead of keys and values."""

from __future__ import annotations

from dataclasses import replace

from servewise.modelspec.families.mixtures import deepseek_experts, dense_first
from servewise.modelspec.families.network import (
    Network,
    drafting_layers,
    drafting_parameters,
    grouped,
    layer_count,
    linear,
)
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward

# FlashMLA's fp8 layout for sparse attention, as vLLM and SGLang store it (vLLM "fp8_ds_mla", 2025-09): the latent in
# fp8 with one fp32 scale per 128 values, the rotary part in bf16. The indexer's keys: fp8, one fp32 scale per 128.
SCALE_GROUP, SCALE_BYTES = 128, 4


def query_rank_of(fields: Fields, default: int) -> int:
    """``q_lora_rank``: 0 where it is null (one query matrix), the family's ``default`` where it is not there."""
    absent = "q_lora_rank" not in fields.values
    return default if absent else fields.count("q_lora_rank", default=0, least=0)


def latent_attention(fields: Fields, *, default_query_rank: int = 1536, extra_parameters: int = 0) -> Attention:
    """MLA's matrices: the queries' (through ``q_lora_rank``, or one), the latent's down and up, the output's."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    latent, rope = fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim", least=0)
    nope, value = fields.count("qk_nope_head_dim"), fields.count("v_head_dim")
    query_rank = query_rank_of(fields, default_query_rank)
    bias = fields.flag("attention_bias", default=False)
    query_width = heads * (nope + rope)
    down = linear(hidden, query_rank, bias) + query_rank if query_rank else 0
    latent_down = linear(hidden, latent + rope, bias) + latent
    parameters = (
        down
        + linear(query_rank or hidden, query_width)
        + latent_down
        + linear(latent, heads * (nope + value))
        + linear(heads * value, hidden, bias)
        + extra_parameters
    )
    return Attention(
        kind=AttentionKind.LATENT,
        heads=heads,
        kv_heads=1,
        head_dim=latent + rope,
        kv_values_per_token=latent + rope,
        score_width=query_width,
        value_width=heads * value,
        absorbed_score_width=heads * (latent + rope),
        absorbed_value_width=heads * latent,
        parameters=parameters,
        replicated_parameters=down + latent_down + extra_parameters,
    )


def sparse_attention(fields: Fields, query_rank: int, *, indexer: bool) -> Attention:
    """MLA over the ``index_topk`` tokens that an indexer picks (DeepSeek-V3.2, section 2).

    ``indexer`` False: the layer uses the picks of an earlier layer and has no indexer of its own.
    """
    heads, width = fields.count("index_n_heads"), fields.count("index_head_dim")
    hidden, rank = fields.count("hidden_size"), query_rank_of(fields, query_rank)
    own = linear(rank, heads * width) + linear(hidden, width) + 2 * width + linear(hidden, heads)
    base = latent_attention(fields, default_query_rank=query_rank, extra_parameters=own if indexer else 0)
    latent, rope = fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim", least=0)
    return replace(
        base,
        attended_tokens=fields.count("index_topk"),
        index_width=heads * width if indexer else 0,
        extra_kv_bytes_per_token=_scaled_fp8(width) if indexer else 0,
        fp8_kv_bytes_per_token=_scaled_fp8(latent) + 2 * rope,
    )


def _scaled_fp8(values: int) -> int:
    return values + -(-values // SCALE_GROUP) * SCALE_BYTES


def deepseek_v2(fields: Fields) -> Network:
    """DeepSeek-V2: MLA, two shared experts, no score correction, no dense layer where the config is silent."""
    experts = deepseek_experts(fields, shared_default=2, score_correction=False)
    return _network(fields, experts, [latent_attention(fields)], dense_layers=0, table_copies=0)


def deepseek_v3(fields: Fields) -> Network:
    """DeepSeek-V3, R1 and Kimi K2: MLA, shared experts, score correction."""
    return _network(fields, deepseek_experts(fields), [latent_attention(fields)], dense_layers=3, table_copies=2)


def deepseek_v32(fields: Fields) -> Network:
    """DeepSeek-V3.2: V3 with sparse attention; ``indexer_types`` says which layers share an indexer."""
    return _sparse(fields, 1536, 2)


def glm_moe_dsa(fields: Fields) -> Network:
    """GLM-5: DeepSeek-V3.2's layers with a query rank of 2,048 where the config is silent."""
    return _sparse(fields, 2048, 0)


def _sparse(fields: Fields, query_rank: int, table_copies: int) -> Network:
    count = layer_count(fields)
    types = fields.choices("indexer_types", ("full", "shared"), count) or ["full"]
    kinds = {name: sparse_attention(fields, query_rank, indexer=name == "full") for name in set(types)}
    return _network(
        fields, deepseek_experts(fields), [kinds[each] for each in types], dense_layers=3, table_copies=table_copies
    )


def _network(
    fields: Fields, sparse: FeedForward, attentions: list[Attention], *, dense_layers: int, table_copies: int
) -> Network:
    parts = dense_first(fields, sparse, dense_layers)
    each_layer = attentions if len(attentions) == len(parts) else attentions * len(parts)
    hidden = fields.count("hidden_size")
    return Network(
        layers=grouped((mixer, part, 2 * hidden) for mixer, part in zip(each_layer, parts, strict=True)),
        tied=fields.flag("tie_word_embeddings", default=False),
        final_norm_parameters=hidden,
        uncounted=drafting_layers(fields),
        drafting_parameters=drafting_parameters(fields, (attentions[0], sparse, 2 * hidden), table_copies=table_copies),
    )
