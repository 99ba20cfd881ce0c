"""Mixtures of experts with grouped-query attention."""

from __future__ import annotations

from dataclasses import replace

from servewise.modelspec.families.attention import grouped_query, read_heads, windowed_layers
from servewise.modelspec.families.feed_forward import dense, gated, mixture
from servewise.modelspec.families.llama import Style, assemble, read_attention, read_window
from servewise.modelspec.families.network import Network, drafting_parameters, grouped, layer_count
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import FeedForward


def mixtral(fields: Fields) -> Network:
    """Mixtral: Mistral's layers with routed experts."""
    window = read_window(fields)
    return _uniform(fields, Style(kv_heads=8), _routed(fields, "num_local_experts", "intermediate_size"), window)


def minimax_m2(fields: Fields) -> Network:
    """MiniMax M2: a norm over all query and all key heads, experts of ``intermediate_size``, score correction."""
    style = Style(wide_norm=True, kv_heads=8, head_dim=128)
    return _uniform(fields, style, _routed(fields, "num_local_experts", "intermediate_size", score_correction=True))


def olmoe(fields: Fields) -> Network:
    """OLMoE: a norm over all query and all key heads, experts of ``intermediate_size``."""
    return _uniform(fields, Style(wide_norm=True), _routed(fields, "num_experts", "intermediate_size"))


def qwen2_moe(fields: Fields) -> Network:
    """Qwen 1.5/2 MoE: a shared expert with a gate beside the routed ones."""
    style = Style(qkv_bias=fields.flag("qkv_bias", default=True), out_bias=False, kv_heads=16)
    return _sparse_steps(fields, style, shared_experts(fields))


def qwen3_moe(fields: Fields) -> Network:
    """Qwen 3 MoE: routed experts only, a norm over each head (``head_dim`` of hidden_size / heads by default)."""
    return _sparse_steps(fields, Style(head_norm=True, kv_heads=4), 0)


def shared_experts(fields: Fields) -> int:
    """Parameters of Qwen's shared expert with its gate; 0 where its width is 0."""
    width = fields.count("shared_expert_intermediate_size", least=0)
    hidden = fields.count("hidden_size")
    return gated(hidden, width) + hidden if width else 0


def qwen_experts(fields: Fields, shared_parameters: int) -> FeedForward:
    """Qwen's routed experts beside ``shared_parameters``."""
    return _routed(fields, "num_experts", "moe_intermediate_size", shared_parameters=shared_parameters)


def _sparse_steps(fields: Fields, style: Style, shared_parameters: int) -> Network:
    count, step = layer_count(fields), fields.count("decoder_sparse_step", default=1)
    dense_layers = fields.indices("mlp_only_layers") or frozenset()
    sparse = qwen_experts(fields, shared_parameters)
    narrow = dense(fields) if dense_layers or step > 1 else sparse
    parts = [narrow if index in dense_layers or (index + 1) % step else sparse for index in range(count)]
    size = read_heads(fields, kv_heads=style.kv_heads, head_dim=style.head_dim)
    return assemble(fields, style, size, parts, [False] * count, None)


def glm4_moe(fields: Fields) -> Network:
    """GLM-4.5 to 4.7: biases on q, k, v, dense first layers, shared experts, score correction."""
    style = Style(out_bias=False, kv_heads=8, head_norm=fields.flag("use_qk_norm", default=False))
    return _dense_first(fields, style, deepseek_experts(fields))


def deepseek_experts(fields: Fields, *, shared_default: int = 1, score_correction: bool = True) -> FeedForward:
    """DeepSeek's routed experts with ``n_shared_experts`` shared ones of the same width.

    ``shared_default`` is the family's number of shared experts where the config is silent.
    """
    hidden, width = fields.count("hidden_size"), fields.count("moe_intermediate_size")
    shared = fields.count("n_shared_experts", "num_shared_experts", default=shared_default, least=0)
    names = ("n_routed_experts", "num_experts", "num_local_experts")
    return mixture(
        fields,
        experts=fields.count(*names),
        per_token=fields.count("num_experts_per_tok", "num_experts_per_token"),
        expert_parameters=gated(hidden, width),
        shared_parameters=gated(hidden, width * shared) if shared else 0,
        score_correction=score_correction,
    )


def dense_first(fields: Fields, sparse: FeedForward, default: int) -> list[FeedForward]:
    """The feed-forward parts: dense in the first ``first_k_dense_replace`` layers, then every ``moe_layer_freq``-th.

    ``default`` is the family's number of dense layers where the config is silent; ``mlp_layer_types`` overrides it.
    """
    flags = _sparse_flags(fields, layer_count(fields), default)
    thick = dense(fields) if not all(flags) else sparse
    return [sparse if flag else thick for flag in flags]


def _sparse_flags(fields: Fields, count: int, default: int) -> list[bool]:
    types = fields.choices("mlp_layer_types", ("dense", "sparse"), count)
    if types:
        return [each == "sparse" for each in types]
    if isinstance(fields.get("moe_layer_freq"), list):
        return [each == 1 for each in fields.listed("moe_layer_freq", count) or ()]
    first, every = (
        fields.count("first_k_dense_replace", default=default, least=0),
        fields.count("moe_layer_freq", default=1),
    )
    return [index >= first and index % every == 0 for index in range(count)]


def _dense_first(fields: Fields, style: Style, sparse: FeedForward) -> Network:
    parts, size = dense_first(fields, sparse, 1), read_heads(fields, kv_heads=style.kv_heads)
    network = assemble(fields, style, size, parts, [False] * len(parts), None)
    layer = (read_attention(fields, style, size), sparse, style.norms * size.hidden)
    return replace(network, drafting_parameters=drafting_parameters(fields, layer, table_copies=2))


def _routed(
    fields: Fields, experts: str, width: str, *, shared_parameters: int = 0, score_correction: bool = False
) -> FeedForward:
    return mixture(
        fields,
        experts=fields.count(experts, "num_experts", "num_local_experts"),
        per_token=fields.count("num_experts_per_tok"),
        expert_parameters=gated(fields.count("hidden_size"), fields.count(width)),
        shared_parameters=shared_parameters,
        score_correction=score_correction,
    )


def _uniform(fields: Fields, style: Style, sparse: FeedForward, window: int | None = None) -> Network:
    count = layer_count(fields)
    size = read_heads(fields, kv_heads=style.kv_heads, head_dim=style.head_dim)
    return assemble(fields, style, size, [sparse] * count, [window is not None] * count, window)


def gpt_oss(fields: Fields) -> Network:
    """gpt-oss: biases everywhere, a learned sink a head, every second layer (from the first) in a window."""
    count, size = layer_count(fields), read_heads(fields, kv_heads=8, head_dim=64)
    window = fields.count("sliding_window", default=128)
    windows = windowed_layers(fields, count, default=[index % 2 == 0 for index in range(count)])
    hidden, width = size.hidden, fields.count("intermediate_size")
    sparse = mixture(
        fields,
        experts=fields.count("num_local_experts", "num_experts"),
        per_token=fields.count("num_experts_per_tok", "experts_per_token"),
        expert_parameters=gated(hidden, width, bias=True),
        router_bias=True,
    )
    bias = fields.flag("attention_bias", default=True)
    full, narrow = (
        grouped_query(size, qkv_bias=bias, out_bias=bias, window_tokens=each, extra_parameters=size.heads)
        for each in (None, window)
    )
    return Network(
        layers=grouped((narrow if each else full, sparse, 2 * hidden) for each in windows),
        tied=fields.flag("tie_word_embeddings", default=False),
        final_norm_parameters=hidden,
    )


def llama4(fields: Fields) -> Network:
    """Llama 4: a routed and a shared expert in every ``interleave_moe_layer_step``-th layer, chunks in three of four.

    Layers with rotary embedding attend within chunks of ``attention_chunk_size`` tokens; those that
    ``no_rope_layers`` marks with 0 (every fourth by default) attend to everything.
    """
    count, size = layer_count(fields), read_heads(fields, kv_heads=8, head_dim=128)
    chunk = fields.count("attention_chunk_size", default=8192)
    chunked = _chunked_layers(fields, count)
    full = grouped_query(size)
    local = grouped_query(size, window_tokens=chunk, chunked=True)
    parts = _llama4_feed_forwards(fields, count)
    return Network(
        layers=grouped(
            (local if each else full, part, 2 * size.hidden) for each, part in zip(chunked, parts, strict=True)
        ),
        tied=fields.flag("tie_word_embeddings", default=False),
        final_norm_parameters=size.hidden,
    )


def _chunked_layers(fields: Fields, count: int) -> list[bool]:
    every = fields.count("no_rope_layer_interval", default=4)
    rope = fields.listed("no_rope_layers", None if fields.get("no_rope_layers") == [] else count)
    default = [bool(each) for each in rope] if rope else [(index + 1) % every != 0 for index in range(count)]
    return windowed_layers(fields, count, default=default)


def _llama4_feed_forwards(fields: Fields, count: int) -> list[FeedForward]:
    step = fields.count("interleave_moe_layer_step", default=1)
    listed = fields.indices("moe_layers")
    sparse_layers = frozenset(range(step - 1, count, step)) if listed is None else listed & set(range(count))
    expert = gated(fields.count("hidden_size"), fields.count("intermediate_size"))
    sparse = mixture(
        fields,
        experts=fields.count("num_local_experts"),
        per_token=fields.count("num_experts_per_tok", default=1),
        expert_parameters=expert,
        shared_parameters=expert,
    )
    thick = dense(fields, "intermediate_size_mlp") if len(sparse_layers) < count else sparse
    return [sparse if index in sparse_layers else thick for index in range(count)]
