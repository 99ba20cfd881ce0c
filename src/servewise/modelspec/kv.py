"""KV cache arithmetic: bytes a token, bytes a sequence, in all and on one tensor-parallel rank.

>>> from servewise.modelspec.load import load_model
>>> from servewise.precision import FORMATS
>>> kv_bytes_per_token(load_model("llama-3.1-8b"), FORMATS["bf16"])
131072.0
"""

from __future__ import annotations

from servewise.modelspec.spec import Attention, AttentionKind, ModelSpec
from servewise.precision import FORMATS, Precision

STATE = FORMATS["fp32"]  # of recurrent states
CONVOLUTION = FORMATS["bf16"]  # and a convolution's last inputs in the activations' format


def kv_bytes_per_token(model: ModelSpec, kv: Precision) -> float:
    """KV bytes that one more token takes in all layers, as long as no window is full [bytes].

    The study's 2 x layers x kv_heads x head_dim x bytes, summed by layer kind; a windowed layer counts in full.
    """
    return kv_bytes_per_token_per_rank(model, kv, 1)


def kv_bytes_per_token_per_rank(
    model: ModelSpec, kv: Precision, tensor: int, decode_context_parallel: int = 1
) -> float:
    """KV bytes that one more token takes on one of ``tensor`` ranks, every layer counted in full [bytes].

    KV heads are shared out, and replicated where there are more ranks than heads; MLA's latent is held whole by every
    rank. ``decode_context_parallel`` ranks share the tokens themselves out, whatever the layer's kind (on average).
    """
    whole = sum(count * layer_kv_bytes_per_token(each, kv, tensor) for count, each in model.attentions())
    return whole / decode_context_parallel


def layer_kv_bytes_per_token(attention: Attention, kv: Precision, tensor: int = 1) -> float:
    """KV bytes that one token takes in one layer on one of ``tensor`` ranks [bytes]."""
    if kv.name == "fp8" and attention.fp8_kv_bytes_per_token:
        return float(attention.fp8_kv_bytes_per_token + attention.extra_kv_bytes_per_token)
    return kv.bytes_for(rank_kv_values(attention, tensor)) + attention.extra_kv_bytes_per_token


def rank_kv_values(attention: Attention, tensor: int) -> int:
    """Values that a token stores on one of ``tensor`` ranks: those of ceil(kv_heads / tensor) heads."""
    if not attention.splits_by_tensor_parallel or not attention.kv_heads:
        return attention.kv_values_per_token
    return attention.kv_values_per_token // attention.kv_heads * -(-attention.kv_heads // tensor)


def windowed_kv_bytes_per_token(model: ModelSpec, kv: Precision, tensor: int = 1) -> float:
    """The part of ``kv_bytes_per_token_per_rank`` that stops growing at the window [bytes]."""
    windowed = ((count, each) for count, each in model.attentions() if each.window_tokens)
    return float(sum(count * layer_kv_bytes_per_token(each, kv, tensor) for count, each in windowed))


def kv_bytes(model: ModelSpec, context_tokens: int, kv: Precision, *, new_tokens: int = 1, tensor: int = 1) -> float:
    """KV bytes of one sequence of ``context_tokens`` on one of ``tensor`` ranks, windows and states in it [bytes].

    ``new_tokens`` are written in one step: a windowed layer holds them beside the window - 1 tokens that the first of
    them still reads (vLLM SlidingWindowSpec, 2025-08), so a long prefill chunk takes more than the window.
    """
    held = sum(
        count * layer_kv_bytes_per_token(each, kv, tensor) * held_tokens(each, context_tokens, new_tokens)
        for count, each in model.attentions()
    )
    return held + state_bytes_per_sequence(model, tensor)


def held_tokens(attention: Attention, context_tokens: int, new_tokens: int = 1) -> int:
    """Tokens of a sequence whose keys and values a layer holds while ``new_tokens`` are written."""
    if attention.window_tokens is None:
        return context_tokens
    return min(context_tokens, attention.window_tokens - 1 + new_tokens)


def kv_read_bytes_per_token(model: ModelSpec, kv: Precision, *, windowed: bool, tensor: int = 1) -> float:
    """Bytes a query reads for one token of context, in the layers without or with a limit on what is read [bytes].

    Limited are windowed layers and, in sparse attention, all but the indexer's keys (``ModelSpec.read_window_tokens``).
    """
    total = 0.0
    for count, each in model.attentions():
        whole = layer_kv_bytes_per_token(each, kv, tensor)
        kept = each.extra_kv_bytes_per_token if each.attended_tokens else 0.0 if each.window_tokens else whole
        total += count * (whole - kept if windowed else kept)
    return total


def state_bytes_per_sequence(model: ModelSpec, tensor: int = 1, state: Precision = STATE) -> float:
    """Bytes that a sequence keeps whatever its length: states and convolutions of linear-attention layers [bytes].

    ``state`` is the format of the states: fp32 in SGLang, and in vLLM where the config's ``mamba_ssm_dtype`` says so;
    vLLM's own default is the activations' format.
    """
    states = [(count, each) for count, each in model.attentions() if each.kind is AttentionKind.STATE]
    held = sum(
        count * (state.bytes_for(each.state_values) + CONVOLUTION.bytes_for(each.convolution_values))
        for count, each in states
    )
    return float(held) / tensor
