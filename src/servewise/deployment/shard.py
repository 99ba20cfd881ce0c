"""What one accelerator holds of the weights: tensor-parallel shards, pipeline stages, experts spread over ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from servewise.deployment.deployment import Deployment, Parallelism
from servewise.deployment.engine import EngineProfile
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers, ModelSpec
from servewise.modelspec.weights import quantised_parameters


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage: its share of every group of layers, and whether it holds the embedding and the head.

    The order of unequal layers is not known here, so each stage gets its part of each kind.
    """

    share: float
    layers: int
    first: bool
    last: bool


def pipeline_stages(layer_count: int, pipeline: int) -> Iterator[Stage]:
    """The stages, as vLLM splits layers: evenly, the remainder to those before the last.

    Source: vllm/distributed/utils.py get_pp_indices (v0.9).

    >>> [stage.layers for stage in pipeline_stages(61, 4)]
    [15, 15, 16, 15]
    """
    base, remainder = divmod(layer_count, pipeline)
    wider = {(pipeline - 2 - extra) % pipeline for extra in range(remainder)}
    for index in range(pipeline):
        layers = base + (index in wider)
        yield Stage(layers / max(layer_count, 1), layers, index == 0, index == pipeline - 1)


def stage_weight_bytes(deployment: Deployment, profile: EngineProfile, stage: Stage) -> float:
    """Bytes of weights on one accelerator of ``stage``, as the engine loads them [bytes].

    Norms and routers are on every rank, key and value projections are copied where there are more ranks than KV
    heads, MLA's down-projection to the latent is on every rank. Left out: MLA's query down-projection, counted as
    shared out (1.5% of a rank of DeepSeek-V3 at TP8).
    """
    model, parallelism = deployment.model, deployment.parallelism
    per_value = matrix_bytes_per_value(deployment)
    plain = plain_bytes_per_value(deployment)
    matrices = sum(g.count * stage.share * _rank_matrices(model, g, parallelism) for g in model.layers)
    norms = sum(g.count * stage.share * g.norm_parameters for g in model.layers)
    outside = norms + _outer_parameters(deployment, profile, stage)
    return matrices * per_value + outside * plain + _rotary_bytes(deployment, profile)


def matrix_bytes_per_value(deployment: Deployment) -> float:
    """Mean bytes of a value of the layers' matrices: quantised and plain parts weighed [bytes]."""
    model, stored = deployment.model, deployment.stored_weights
    plain = plain_bytes_per_value(deployment)
    if stored.bits >= 16 or deployment.weights or model.quantised_parameters is None:
        return stored.bits / 8
    part = min(1.0, model.quantised_parameters / max(quantised_parameters(model), 1))
    return part * stored.bits / 8 + (1 - part) * plain


def plain_bytes_per_value(deployment: Deployment) -> float:
    """Bytes of a value of embedding, head and norms [bytes]."""
    stored = deployment.stored_weights
    return (stored.bits if stored.bits >= 16 else deployment.model.dtype.bits) / 8


def _rank_matrices(model: ModelSpec, group: Layers, parallelism: Parallelism) -> float:
    attention = _rank_attention(model.hidden_size, group.attention, parallelism.tensor)
    return attention + _rank_feed_forward(model.hidden_size, group.feed_forward, parallelism)


def _rank_attention(hidden: int, attention: Attention, tensor: int) -> float:
    """Parameters of the token mixer on one rank."""
    kv_part = min(hidden * attention.kv_values_per_token, attention.parameters)
    if attention.kind is AttentionKind.LATENT:
        return kv_part + (attention.parameters - kv_part) / tensor
    if not attention.kv_heads:
        return attention.parameters / tensor
    return kv_part * kv_heads_share(attention.kv_heads, tensor) + (attention.parameters - kv_part) / tensor


def kv_heads_share(kv_heads: int, tensor: int) -> float:
    """The share of the KV heads that one tensor-parallel rank holds; heads are copied when ranks outnumber them.

    >>> kv_heads_share(8, 4), kv_heads_share(4, 8)
    (0.25, 0.25)
    """
    return math.ceil(kv_heads / tensor) / kv_heads


def _rank_feed_forward(hidden: int, feed_forward: FeedForward, parallelism: Parallelism) -> float:
    """Parameters of the feed-forward part on one rank: routers whole, experts by rank when expert parallel."""
    router = min(hidden * feed_forward.experts, feed_forward.dense_parameters)
    dense = router + (feed_forward.dense_parameters - router) / parallelism.tensor
    if not parallelism.expert:
        return dense + feed_forward.experts * feed_forward.expert_parameters / parallelism.tensor
    held = math.ceil(feed_forward.experts / (parallelism.tensor * parallelism.data))
    return dense + held * feed_forward.expert_parameters


def _outer_parameters(deployment: Deployment, profile: EngineProfile, stage: Stage) -> float:
    """Embedding, head and final norm on one rank; a tied table is on the first and on the last stage."""
    model, tensor = deployment.model, deployment.parallelism.tensor
    padded = math.ceil(model.vocab_size / profile.vocab_padding) * profile.vocab_padding
    grown = padded / max(model.vocab_size, 1)
    table = model.embedding_parameters * grown / tensor
    head = model.head_parameters * grown / tensor or (0.0 if stage.first else table)
    return (table if stage.first else 0.0) + (head + model.final_norm_parameters if stage.last else 0.0)


def _rotary_bytes(deployment: Deployment, profile: EngineProfile) -> float:
    """The table of cosines and sines: context x head width in the activations' format, one for all layers [bytes]."""
    widths = [each.head_dim for _, each in deployment.model.attentions()]
    context = deployment.model.max_context_tokens or 0
    return deployment.activations.bytes_for(context * max(widths, default=0)) if profile.rotary_table else 0.0
