"""The weights that a decoder has, by Hugging Face name, with their shapes."""

from __future__ import annotations

import math

from servewise.engine.config import DecoderConfig

Shape = tuple[int, ...]
EMBEDDING, HEAD, FINAL_NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"


def expected_weights(config: DecoderConfig) -> dict[str, Shape]:
    """Name -> shape of every weight, embedding first; (out, in) for matrices.

    A tied decoder has no ``lm_head.weight``: the embedding table serves for both.
    """
    shapes: dict[str, Shape] = {EMBEDDING: (config.vocabulary, config.hidden)}
    for index in range(config.layers):
        shapes |= {f"model.layers.{index}.{name}": shape for name, shape in layer_weights(config).items()}
    shapes[FINAL_NORM] = (config.hidden,)
    return shapes if config.tied else shapes | {HEAD: (config.vocabulary, config.hidden)}


def layer_weights(config: DecoderConfig) -> dict[str, Shape]:
    """Name within a layer -> shape."""
    hidden, inner = config.hidden, config.intermediate
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
    shapes: dict[str, Shape] = {
        "input_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (queries, hidden),
        "self_attn.k_proj.weight": (keys, hidden),
        "self_attn.v_proj.weight": (keys, hidden),
        "self_attn.o_proj.weight": (hidden, queries),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    if config.qkv_bias:
        rows = {"q": queries, "k": keys, "v": keys}
        shapes |= {f"self_attn.{part}_proj.bias": (count,) for part, count in rows.items()}
    if config.output_bias:
        shapes["self_attn.o_proj.bias"] = (hidden,)
    if config.mlp_bias:
        shapes |= {"mlp.gate_proj.bias": (inner,), "mlp.up_proj.bias": (inner,), "mlp.down_proj.bias": (hidden,)}
    if config.qk_norm:
        shapes |= {"self_attn.q_norm.weight": (config.head_dim,), "self_attn.k_norm.weight": (config.head_dim,)}
    return shapes


def parameters(config: DecoderConfig) -> int:
    """Parameters in all; a table that is tied counts once."""
    return sum(math.prod(shape) for shape in expected_weights(config).values())
