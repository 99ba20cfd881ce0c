"""A decoder of the Llama family as its checkpoint describes it: all that building the network needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeConfig:
    """Rotary positions: base ``theta``, rotated ``dimensions`` of a head, and Llama 3's scaling where ``factor`` > 1.

    Source: Su et al. 2021, eq. 34; the scaling as transformers' ``rope_type: llama3`` computes it.
    """

    theta: float
    dimensions: int
    factor: float = 1.0
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context_tokens: int = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Sizes and switches of a pre-norm decoder with RMS norms, SwiGLU and rotary positions.

    ``qkv_bias`` (Qwen 2), ``qk_norm`` (Qwen 3: an RMS norm over each head of q and k before rotation), ``tied``: the
    output projection is the embedding table. ``window_tokens``: sliding-window attention in every layer (Mistral v0.1).
    ``end_tokens`` end a reply.
    """

    name: str
    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    max_context_tokens: int
    norm_epsilon: float
    rope: RopeConfig
    tied: bool
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    window_tokens: int | None = None
    begin_token: int | None = None
    end_tokens: tuple[int, ...] = ()
