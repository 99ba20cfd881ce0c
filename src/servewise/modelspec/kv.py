"""KV cache arithmetic: bytes a token, bytes a sequence."""

from __future__ import annotations

from servewise.modelspec.spec import Attention, AttentionKind, ModelSpec
from servewise.precision import Precision

STATE_BYTES_PER_VALUE = 4  # engines keep recurrent states in fp32 (vLLM mamba_ssm_cache_dtype, assumed)


def kv_bytes_per_token(model: ModelSpec, kv: Precision) -> float:
    """KV bytes that one more token takes in all layers, as long as no window is full [bytes].

    The study's 2 x layers x kv_heads x head_dim x bytes, summed by layer kind; a windowed layer counts in full.
    """
    return sum(count * layer_kv_bytes_per_token(each, kv) for count, each in model.attentions())


def layer_kv_bytes_per_token(attention: Attention, kv: Precision) -> float:
    """KV bytes that one token takes in one layer [bytes]."""
    return kv.bytes_for(attention.kv_values_per_token) + attention.extra_kv_bytes_per_token


def windowed_kv_bytes_per_token(model: ModelSpec, kv: Precision) -> float:
    """The part of ``kv_bytes_per_token`` that stops growing at the window [bytes]."""
    return sum(count * layer_kv_bytes_per_token(each, kv) for count, each in model.attentions() if each.window_tokens)


def kv_bytes(model: ModelSpec, context_tokens: int, kv: Precision) -> float:
    """KV bytes of one sequence of ``context_tokens`` tokens, windows and states respected [bytes]."""
    held = sum(
        count * layer_kv_bytes_per_token(each, kv) * min(context_tokens, each.window_tokens or context_tokens)
        for count, each in model.attentions()
    )
    return held + state_bytes_per_sequence(model)


def state_bytes_per_sequence(model: ModelSpec) -> float:
    """Bytes that a sequence keeps whatever its length: states of linear-attention layers [bytes]."""
    states = sum(count * each.state_values for count, each in model.attentions() if each.kind is AttentionKind.STATE)
    return float(states * STATE_BYTES_PER_VALUE)
