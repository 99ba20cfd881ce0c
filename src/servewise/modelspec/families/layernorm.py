"""LayerNorm and a plain feed-forward part: GPT-2, GPT-NeoX, OPT, BLOOM, Falcon, Phi 1 and 2, StarCoder 2."""

from __future__ import annotations

from servewise.modelspec.families.attention import Heads, grouped_query, read_heads
from servewise.modelspec.families.feed_forward import plain
from servewise.modelspec.families.llama import read_window
from servewise.modelspec.families.network import Network, grouped, layer_count
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import FeedForward


def _network(
    fields: Fields,
    size: Heads,
    width: int,
    *,
    layers: str = "num_hidden_layers",
    attention_bias: bool = True,
    mlp_bias: bool = True,
    norms: int = 2,
    tied: bool,
    positions: int = 0,
    embedding_norm: bool = False,
    head_bias: bool = False,
    window: int | None = None,
) -> Network:
    norm = 2 * size.hidden  # weight and bias
    attention = grouped_query(size, qkv_bias=attention_bias, out_bias=attention_bias, window_tokens=window)
    feed_forward = FeedForward(dense_parameters=plain(size.hidden, width, bias=mlp_bias))
    return Network(
        layers=grouped([(attention, feed_forward, norms * norm)] * layer_count(fields, layers)),
        tied=fields.flag("tie_word_embeddings", default=tied),
        final_norm_parameters=norm,
        embedding_extra_parameters=positions * size.hidden + norm * embedding_norm,
        head_extra_parameters=fields.count("vocab_size") * head_bias,
    )


def gpt_neox(fields: Fields) -> Network:
    """GPT-NeoX and Pythia: biases everywhere, own head (Biderman et al. 2023)."""
    bias = fields.flag("attention_bias", default=True)
    return _network(fields, read_heads(fields), fields.count("intermediate_size"), attention_bias=bias, tied=False)


def phi(fields: Fields) -> Network:
    """Phi 1, 1.5 and 2: one norm a layer (attention and feed-forward run in parallel), biases, also on the logits."""
    if fields.flag("qk_layernorm", default=False):
        raise fields.wrong("qk_layernorm", True, "false (a norm a head is not counted yet)")
    size = read_heads(fields)
    return _network(fields, size, fields.count("intermediate_size"), norms=1, tied=False, head_bias=True)


def falcon(fields: Fields) -> Network:
    """Falcon: one KV head (7B), or groups of heads with two norms a layer (40B, 180B); no biases unless ``bias``."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads", "n_head")
    grouped_heads = fields.flag("new_decoder_architecture", default=False)
    single = fields.flag("multi_query", default=True)
    own = fields.count("num_kv_heads", "n_head_kv", default=heads)
    kv_heads = own if grouped_heads else 1 if single else heads
    width = max(1, hidden // heads)
    size = Heads(hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=width, value_dim=width)
    parallel = fields.flag("parallel_attn", default=True)
    bias = fields.flag("bias", default=False)
    return _network(
        fields,
        size,
        fields.count("ffn_hidden_size", default=4 * hidden),
        attention_bias=bias,
        mlp_bias=bias,
        norms=_falcon_norms(fields, grouped_heads, parallel),
        tied=True,
    )


def _falcon_norms(fields: Fields, grouped_heads: bool, parallel: bool) -> int:
    if grouped_heads:
        return fields.count("num_ln_in_parallel_attn", default=2, most=2)
    return 1 if parallel else 2


def gpt2(fields: Fields) -> Network:
    """GPT-2: learned positions, biases, tied; ``n_inner`` is 4 x ``n_embd`` where it is null (Radford et al. 2019)."""
    hidden, heads = fields.count("n_embd", "hidden_size"), fields.count("n_head", "num_attention_heads")
    size = _equal_heads(hidden, heads)
    positions = fields.count("n_positions", "max_position_embeddings", default=1024)
    layers = "n_layer" if fields.has("n_layer") else "num_hidden_layers"
    width = fields.count("n_inner", default=4 * hidden)
    return _network(fields, size, width, layers=layers, tied=True, positions=positions)


def starcoder2(fields: Fields) -> Network:
    """StarCoder 2: grouped queries, one ``use_bias`` for all matrices, tied; windows are left to ``sliding_window``."""
    bias = fields.flag("use_bias", default=True)
    window = read_window(fields)
    size, width = read_heads(fields, kv_heads=2), fields.count("intermediate_size")
    return _network(fields, size, width, attention_bias=bias, mlp_bias=bias, tied=True, window=window)


def _equal_heads(hidden: int, heads: int) -> Heads:
    width = max(1, hidden // heads)
    return Heads(hidden=hidden, heads=heads, kv_heads=heads, head_dim=width, value_dim=width)


def opt(fields: Fields) -> Network:
    """OPT: learned positions (two more than the context), biases, tied embedding (Zhang et al. 2022)."""
    hidden = fields.count("hidden_size")
    projection = fields.count("word_embed_proj_dim", default=hidden)
    if projection != hidden:
        raise fields.wrong("word_embed_proj_dim", projection, f"hidden_size ({hidden}); OPT-350m is not counted")
    positions = fields.count("max_position_embeddings", default=2048) + 2
    width = fields.count("ffn_dim", "intermediate_size")
    return _network(fields, read_heads(fields), width, tied=True, positions=positions)


def bloom(fields: Fields) -> Network:
    """BLOOM: ALiBi instead of positions, a norm on the embedding, tied (Scao et al. 2022)."""
    hidden, heads = fields.count("hidden_size", "n_embed"), fields.count("n_head", "num_attention_heads")
    size = _equal_heads(hidden, heads)
    layers = "n_layer" if fields.has("n_layer") else "num_hidden_layers"
    return _network(fields, size, 4 * hidden, layers=layers, tied=True, embedding_norm=True)
