"""The attention kernels of one step: equal layers gathered, with what a token costs in each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from servewise.deployment.deployment import Deployment
from servewise.modelspec.flops import attention_flops_per_pair
from servewise.modelspec.kv import kv_read_bytes_per_token, state_bytes_per_sequence
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers
from servewise.steptime.gemms import OUTPUT_BYTES

SHARING = (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED)


class PerPair(NamedTuple):
    """FLOPs of one query-key pair: of all pairs, and of those within the window (or sparse top-k)."""

    full: float
    windowed: float


class AttentionLayer(NamedTuple):
    """One attention layer on one rank.

    ``multi_head``: each query head has keys of its own (no grouping), for which engines run another kernel.
    ``moved_bytes_per_token`` are a new token's query and result. ``state_bytes`` a sequence reads and writes.
    ``tiled_heads`` are the query heads where prompts and decodes may share a kernel; 0: never (latents, states).
    """

    multi_head: bool
    kv_bytes: float
    windowed_kv_bytes: float
    decode: PerPair
    prefill: PerPair
    moved_bytes_per_token: float
    state_bytes: float
    tiled_heads: float = 0.0


def attention_layers(deployment: Deployment) -> tuple[tuple[int, AttentionLayer], ...]:
    """(count, layer) for each kind of attention layer. Bytes and FLOPs sum to those of ``Work``."""
    counts: Counter[AttentionLayer] = Counter()
    for count, each in deployment.model.attentions():
        if each.kind is not AttentionKind.NONE:
            counts[_layer(deployment, each)] += count
    return tuple((count, layer) for layer, count in counts.items())


def _layer(deployment: Deployment, attention: Attention) -> AttentionLayer:
    tensor, kv = deployment.parallelism.tensor, deployment.kv
    alone = replace(deployment.model, layers=(Layers(count=1, attention=attention, feed_forward=FeedForward()),))

    def pairs(absorbed: bool) -> PerPair:
        full = attention_flops_per_pair(alone, windowed=False, absorbed=absorbed)
        return PerPair(full / tensor, attention_flops_per_pair(alone, windowed=True, absorbed=absorbed) / tensor)

    sharers = deployment.parallelism.decode_context
    return AttentionLayer(
        multi_head=0 < attention.heads == attention.kv_heads and attention.kind is not AttentionKind.LATENT,
        kv_bytes=kv_read_bytes_per_token(alone, kv, windowed=False, tensor=tensor) / sharers,
        windowed_kv_bytes=kv_read_bytes_per_token(alone, kv, windowed=True, tensor=tensor) / sharers,
        decode=pairs(absorbed=True),
        prefill=pairs(absorbed=False),
        moved_bytes_per_token=OUTPUT_BYTES * (attention.score_width + attention.value_width) / tensor,
        state_bytes=2.0 * state_bytes_per_sequence(alone, tensor),
        tiled_heads=attention.heads / tensor if attention.kind in SHARING else 0.0,
    )
