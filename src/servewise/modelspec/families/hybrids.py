"""Hybrids: layers with a state of fixed size among layers that keep keys and values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from servewise.modelspec.families.attention import NO_ATTENTION, grouped_query, read_heads
from servewise.modelspec.families.feed_forward import NO_FEED_FORWARD, dense, mixture, plain
from servewise.modelspec.families.latent import latent_attention
from servewise.modelspec.families.mixtures import deepseek_experts, dense_first, qwen_experts, shared_experts
from servewise.modelspec.families.network import (
    Layer,
    Network,
    drafting_layers,
    drafting_parameters,
    grouped,
    layer_count,
    linear,
)
from servewise.modelspec.fields import MOST_LAYERS, Fields
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward

HYBRID = ("linear_attention", "full_attention")


def gated_delta_net(fields: Fields) -> Attention:
    """Gated DeltaNet (Yang et al. 2024) as Qwen3-Next has it: a state of key_dim x value_dim for each value head."""
    hidden = fields.count("hidden_size")
    key_heads, value_heads = fields.count("linear_num_key_heads"), fields.count("linear_num_value_heads")
    key_dim, value_dim = fields.count("linear_key_head_dim"), fields.count("linear_value_head_dim")
    kernel = fields.count("linear_conv_kernel_dim", default=4)
    keys, values = key_heads * key_dim, value_heads * value_dim
    mixed = 2 * keys + values
    parameters = (
        linear(hidden, mixed + values)  # q, k, v and the output gate
        + linear(hidden, 2 * value_heads)  # decay and write strength
        + mixed * kernel
        + 2 * value_heads
        + value_dim
        + linear(values, hidden)
    )
    return Attention(
        kind=AttentionKind.STATE,
        heads=value_heads,
        head_dim=value_dim,
        state_values=value_heads * key_dim * value_dim,
        convolution_values=mixed * (kernel - 1),
        parameters=parameters,
    )


def qwen3_next(fields: Fields) -> Network:
    """Qwen3-Next: three layers of Gated DeltaNet to one of gated attention, with 2 KV heads by default."""
    return _qwen_hybrid(fields, kv_heads=2)


def qwen3_5(fields: Fields) -> Network:
    """Qwen 3.5, dense: Qwen3-Next's layers, with 4 KV heads by default."""
    return _qwen_hybrid(fields, kv_heads=4)


def _qwen_hybrid(fields: Fields, kv_heads: int) -> Network:
    count, every = layer_count(fields), fields.count("full_attention_interval", default=4)
    default = [HYBRID[(index + 1) % every == 0] for index in range(count)]
    types = fields.choices("layer_types", HYBRID, count) or default
    size = read_heads(fields, kv_heads=kv_heads, head_dim=256)
    bias = fields.flag("attention_bias", default=False)
    mixers = {
        "linear_attention": gated_delta_net(fields),
        "full_attention": grouped_query(
            size,
            head_norm=True,
            output_gate=fields.flag("attn_output_gate", default=True),
            qkv_bias=bias,
            out_bias=bias,
        ),
    }
    parts = _qwen_feed_forwards(fields, count)
    layers = [(mixers[each], part, 2 * size.hidden) for each, part in zip(types, parts, strict=True)]
    drafting = (mixers["full_attention"], parts[-1], 2 * size.hidden)
    network = _network(fields, layers)
    return replace(network, drafting_parameters=drafting_parameters(fields, drafting, table_copies=0))


def _qwen_feed_forwards(fields: Fields, count: int) -> list[FeedForward]:
    if not fields.has("num_experts"):
        return [dense(fields)] * count
    dense_layers = fields.indices("mlp_only_layers") or frozenset()
    step = fields.count("decoder_sparse_step", default=1)
    sparse = qwen_experts(fields, shared_experts(fields))
    thick = dense(fields) if dense_layers or step > 1 else sparse
    return [thick if index in dense_layers or (index + 1) % step else sparse for index in range(count)]


def kimi_linear(fields: Fields) -> Network:
    """Kimi Linear: three layers of Kimi Delta Attention to one of MLA; ``linear_attn_config`` lists them from 1.

    Never tied, as Nemotron-H.
    """
    count, listed = layer_count(fields), fields.part("linear_attn_config")
    if listed is None:
        fields.missing("linear_attn_config")
        listed = Fields({}, fields.where)
    full = listed.indices("full_attn_layers") or frozenset()
    if not full:
        fields.missing("linear_attn_config.full_attn_layers")
    delta, latent = _kimi_delta(fields, listed), latent_attention(fields, default_query_rank=0)
    mixers = [latent if index + 1 in full else delta for index in range(count)]
    parts = dense_first(fields, deepseek_experts(fields), 1)
    hidden = fields.count("hidden_size")
    layers = [(mixer, part, 2 * hidden) for mixer, part in zip(mixers, parts, strict=True)]
    return replace(_network(fields, layers), tied=False)


def _kimi_delta(fields: Fields, listed: Fields) -> Attention:
    hidden = fields.count("hidden_size")
    heads, width = listed.count("num_heads", default=1), listed.count("head_dim", default=1)
    for name in ("num_heads", "head_dim"):
        if not listed.has(name):
            fields.missing(f"linear_attn_config.{name}")
    kernel = listed.count("short_conv_kernel_size", default=4)
    inner = heads * width
    gate = linear(hidden, width) + linear(width, inner)
    if listed.flag("use_full_rank_gate", default=False):
        raise listed.wrong("use_full_rank_gate", True, "false (its matrices are not known)")
    parameters = (
        3 * linear(hidden, inner)
        + 3 * inner * kernel
        + gate  # forget gate
        + gate  # output gate
        + inner  # dt_bias
        + heads  # A_log
        + linear(hidden, heads)
        + width
        + linear(inner, hidden)
    )
    return Attention(
        kind=AttentionKind.STATE,
        heads=heads,
        head_dim=width,
        state_values=heads * width * width,
        convolution_values=3 * inner * (kernel - 1),
        parameters=parameters,
    )


PATTERN = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}


def nemotron_h(fields: Fields) -> Network:
    """Nemotron-H and Nemotron 3: each layer is one of Mamba-2, attention, a feed-forward part or a mixture.

    The head is never tied, whatever the config says: transformers has no tied weights for this family.
    """
    kinds = _nemotron_kinds(fields)
    hidden = fields.count("hidden_size")
    readers: dict[str, Callable[[Fields], tuple[Attention, FeedForward]]] = {
        "mamba": lambda each: (_mamba2(each), NO_FEED_FORWARD),
        "attention": lambda each: (grouped_query(read_heads(each, kv_heads=8, head_dim=128)), NO_FEED_FORWARD),
        "mlp": lambda each: (NO_ATTENTION, _nemotron_mlp(each)),
        "moe": lambda each: (NO_ATTENTION, _nemotron_experts(each)),
    }
    blocks = {kind: readers[kind](fields) for kind in dict.fromkeys(kinds)}
    return replace(_network(fields, [(*blocks[kind], hidden) for kind in kinds]), tied=False)


def _nemotron_kinds(fields: Fields) -> list[str]:
    count = fields.count("num_hidden_layers", default=0, least=0, most=MOST_LAYERS)
    pattern = fields.text("hybrid_override_pattern")
    if pattern:
        if len(pattern) > MOST_LAYERS or set(pattern) - set(PATTERN):
            raise fields.wrong("hybrid_override_pattern", pattern, f"at most {MOST_LAYERS} of {' '.join(PATTERN)}")
        kinds = [PATTERN[each] for each in pattern]
    else:
        kinds = fields.choices("layers_block_type", tuple(PATTERN.values())) or []
    if not kinds:
        fields.missing("hybrid_override_pattern")
    if len(kinds) > MOST_LAYERS or (count and kinds and len(kinds) != count):
        raise fields.wrong("hybrid_override_pattern", f"{len(kinds)} layers", f"num_hidden_layers ({count}) long")
    return kinds


def _mamba2(fields: Fields) -> Attention:
    hidden, state = fields.count("hidden_size"), fields.count("ssm_state_size")
    heads, width = fields.count("mamba_num_heads"), fields.count("mamba_head_dim")
    groups, kernel = fields.count("n_groups", "mamba_n_groups"), fields.count("conv_kernel", "mamba_d_conv", default=4)
    bias = fields.flag("use_bias", "mamba_proj_bias", default=False)
    conv_bias = fields.flag("use_conv_bias", default=True)
    inner = heads * width
    mixed = inner + 2 * groups * state
    parameters = (
        linear(hidden, inner + mixed + heads, bias)
        + mixed * kernel
        + mixed * conv_bias
        + 3 * heads  # dt_bias, A_log, D
        + inner
        + linear(inner, hidden, bias)
    )
    return Attention(
        kind=AttentionKind.STATE,
        heads=heads,
        head_dim=width,
        state_values=inner * state,
        convolution_values=mixed * (kernel - 1),
        parameters=parameters,
    )


def _nemotron_mlp(fields: Fields) -> FeedForward:
    bias = fields.flag("mlp_bias", default=False)
    return FeedForward(
        dense_parameters=plain(fields.count("hidden_size"), fields.count("intermediate_size"), bias=bias)
    )


def _nemotron_experts(fields: Fields) -> FeedForward:
    hidden, width = fields.count("hidden_size"), fields.count("moe_intermediate_size")
    latent = fields.count("moe_latent_size", default=0, least=0)
    bias = fields.flag("mlp_bias", default=False)
    shared = plain(hidden, fields.count("moe_shared_expert_intermediate_size"), bias=bias)
    return mixture(
        fields,
        experts=fields.count("n_routed_experts"),
        per_token=fields.count("num_experts_per_tok"),
        expert_parameters=plain(latent or hidden, width),
        shared_parameters=shared + plain(hidden, latent, bias=bias) if latent else shared,
        score_correction=True,
    )


def _network(fields: Fields, layers: list[Layer]) -> Network:
    return Network(
        layers=grouped(layers),
        tied=fields.flag("tie_word_embeddings", default=False),
        final_norm_parameters=fields.count("hidden_size"),
        uncounted=drafting_layers(fields),
    )
