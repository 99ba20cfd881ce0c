"""Token mixers: grouped-query attention, and what its variants add."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.modelspec.families.network import linear
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import Attention, AttentionKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Widths of an attention layer: ``value_dim`` is the width of a value where it is not a key's."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int

    @property
    def query_width(self) -> int:
        """Width of all queries."""
        return self.heads * self.head_dim

    @property
    def output_width(self) -> int:
        """Width of all heads' outputs."""
        return self.heads * self.value_dim

    @property
    def kv_values(self) -> int:
        """Values that a token stores."""
        return self.kv_heads * (self.head_dim + self.value_dim)


def read_heads(fields: Fields, *, kv_heads: int | None = None, head_dim: int | None = None) -> Heads:
    """The widths, with transformers' defaults where the config is silent.

    ``kv_heads`` is the family's own default (None: as many as query heads); ``head_dim`` likewise (None: hidden_size /
    num_attention_heads).
    """
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    key_heads = fields.count("num_key_value_heads", default=kv_heads or heads)
    if fields.has("num_attention_heads") and heads % key_heads:
        raise fields.wrong("num_key_value_heads", key_heads, f"a divisor of num_attention_heads ({heads})")
    if not fields.has("head_dim") and head_dim is None and hidden % heads and fields.has("hidden_size"):
        raise fields.wrong(
            "hidden_size", hidden, f"a multiple of num_attention_heads ({heads}) where head_dim is missing"
        )
    width = fields.count("head_dim", default=head_dim or max(1, hidden // heads))
    return Heads(hidden=hidden, heads=heads, kv_heads=key_heads, head_dim=width, value_dim=width)


def grouped_query(
    size: Heads,
    *,
    qkv_bias: bool = False,
    out_bias: bool = False,
    head_norm: bool = False,
    wide_norm: bool = False,
    output_gate: bool = False,
    keys_are_values: bool = False,
    window_tokens: int | None = None,
    chunked: bool = False,
    extra_parameters: int = 0,
) -> Attention:
    """Grouped-query attention (Ainslie et al. 2023): q, k, v and output matrices with what a family adds.

    ``head_norm``: a norm over each query and key head (one weight a head dimension, Qwen3); ``wide_norm``: over all
    heads together (OLMo 2, MiniMax M2). ``output_gate``: the query matrix gives a gate for the output too (Qwen3-Next).
    ``keys_are_values``: one matrix gives both (Gemma 4). ``extra_parameters``: sinks and the like.
    """
    key_width, value_width = size.kv_heads * size.head_dim, size.kv_heads * size.value_dim
    parameters = (
        linear(size.hidden, size.query_width * (1 + output_gate), qkv_bias)
        + linear(size.hidden, key_width, qkv_bias)
        + (0 if keys_are_values else linear(size.hidden, value_width, qkv_bias))
        + linear(size.output_width, size.hidden, out_bias)
        + (2 * size.head_dim if head_norm else 0)
        + (size.query_width + key_width if wide_norm else 0)
        + extra_parameters
    )
    windowed = AttentionKind.CHUNKED if chunked else AttentionKind.SLIDING
    return Attention(
        kind=windowed if window_tokens else AttentionKind.FULL,
        heads=size.heads,
        kv_heads=size.kv_heads,
        head_dim=size.head_dim,
        window_tokens=window_tokens,
        kv_values_per_token=size.kv_values,
        score_width=size.query_width,
        value_width=size.output_width,
        parameters=parameters,
    )


NO_ATTENTION = Attention(kind=AttentionKind.NONE)


def windowed_layers(fields: Fields, count: int, *, default: list[bool]) -> list[bool]:
    """For each layer whether it attends to a window, from ``layer_types`` or the family's default pattern."""
    types = fields.choices("layer_types", ("sliding_attention", "full_attention", "chunked_attention"), count)
    return [each != "full_attention" for each in types] if types else default
