"""What one accelerator holds of the weights: tensor-parallel shards, pipeline stages, experts spread over ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import EngineProfile
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, WeightPart
from servewise.modelspec.weights import part_bytes, part_parameters, part_precision, weight_bytes
from servewise.precision import FORMATS

MXFP4_BLOCK = 32  # values that share a scale (OCP MX v1.0)


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

    Norms, routers and what ``Attention.replicated_parameters`` names are on every rank; key and value projections are
    copied where there are more ranks than KV heads. An engine loads the parts that are counted, a vision tower among
    them (shared out over the ranks, as by vLLM's default ``mm_encoder_tp_mode``), without draft layers; ``ideal``
    takes the checkpoint as large as it is.
    """
    parameters, widths = _stage_parameters(deployment, profile, stage), bytes_per_value(deployment)
    loaded = sum(parameters[part] * widths[part] for part in parameters)
    if profile.whole_checkpoint:
        parts = part_bytes(deployment.model, deployment.weights)
        loaded *= weight_bytes(deployment.model, deployment.weights) / sum(parts.values())
    return loaded + _rotary_bytes(deployment, profile)


def bytes_per_value(deployment: Deployment) -> dict[WeightPart, float]:
    """Mean bytes of a stored value of each part [bytes]."""
    model, weights = deployment.model, deployment.weights
    counts, sizes = part_parameters(model), part_bytes(model, weights)
    return {
        part: sizes[part] / counts[part]
        if counts[part] and part in sizes
        else part_precision(model, part, weights).bits / 8
        for part in WeightPart
    }


def _stage_parameters(deployment: Deployment, profile: EngineProfile, stage: Stage) -> dict[WeightPart, float]:
    """Parameters of each part on one rank of ``stage``; a tied table is on the first and on the last stage."""
    model, split = deployment.model, deployment.parallelism
    padded = math.ceil(model.vocab_size / profile.vocab_padding) * profile.vocab_padding
    shard = padded / max(model.vocab_size, 1) / split.tensor
    tables = (stage.first and not profile.embedding_on_host) or (stage.last and model.tied)
    layers = [(group.count * stage.share, group) for group in model.layers]
    return {
        WeightPart.EMBEDDING: model.embedding_parameters * shard * tables,
        WeightPart.HEAD: model.head_parameters * shard * stage.last,
        WeightPart.NORMS: sum(count * each.norm_parameters for count, each in layers)
        + model.final_norm_parameters * stage.last,
        WeightPart.ATTENTION: sum(
            count * _rank_attention(model.hidden_size, each.attention, split.tensor) for count, each in layers
        ),
        WeightPart.FEED_FORWARD: sum(
            count * _rank_dense(model.hidden_size, each.feed_forward, split.tensor) for count, each in layers
        ),
        WeightPart.EXPERTS: sum(
            count * _rank_experts(deployment, profile, each.feed_forward) for count, each in layers
        ),
        WeightPart.TOWER: model.tower_parameters / split.tensor * stage.first,
    }


def _rank_attention(hidden: int, attention: Attention, tensor: int) -> float:
    """Parameters of the token mixer on one rank."""
    whole = attention.replicated_parameters
    if attention.kind is AttentionKind.LATENT or not attention.kv_heads:
        return whole + (attention.parameters - whole) / tensor
    kv_part = min(hidden * attention.kv_values_per_token, attention.parameters - whole)
    shared = attention.parameters - whole - kv_part
    return whole + kv_part * kv_heads_share(attention.kv_heads, tensor) + shared / tensor


def kv_heads_share(kv_heads: int, tensor: int) -> float:
    """The share of the KV heads that one tensor-parallel rank holds; heads are copied when ranks outnumber them.

    >>> kv_heads_share(8, 4), kv_heads_share(4, 8)
    (0.25, 0.25)
    """
    return math.ceil(kv_heads / tensor) / kv_heads


def _rank_dense(hidden: int, feed_forward: FeedForward, tensor: int) -> float:
    """Parameters of dense and shared feed-forward matrices on one rank; the router is whole on each."""
    router = min(hidden * feed_forward.experts, feed_forward.dense_parameters)
    return router + (feed_forward.dense_parameters - router) / tensor


def _rank_experts(deployment: Deployment, profile: EngineProfile, feed_forward: FeedForward) -> float:
    """Parameters of routed experts on one rank: a part of each, or whole ones and their copies when expert parallel."""
    split = deployment.parallelism
    parts = 1 if split.expert else split.tensor
    stored = feed_forward.experts + (split.redundant_experts or 0 if feed_forward.experts else 0)
    held = math.ceil(stored / split.expert_ranks)
    one = feed_forward.expert_parameters / parts
    if profile.mxfp4_padding and deployment.stored_weights.name == "mxfp4":
        hidden, whole = deployment.model.hidden_size, feed_forward.expert_parameters
        one = padded_expert(hidden, whole, parts, profile.mxfp4_padding)
    return held * one


def padded_expert(hidden: int, parameters: int, parts: int, multiples: tuple[int, ...]) -> float:
    """Parameters of one of ``parts`` of a gated expert, its widths grown to multiples as MXFP4 kernels want them.

    inner = parameters / (3 hidden) is a whole number of blocks of 32 unless there are biases, which stay in 16 bits and
    count as 16 / 4.25 values each. Source: vllm/model_executor/layers/quantization/mxfp4.py create_weights, the Marlin
    path, v0.10.1; other kernels pad less (gpt-oss-120b loads as 65.97 GiB with Marlin, 64.38 with Triton).

    >>> padded_expert(2880, 3 * 2880 * 2880, 1, (256, 128)) == 3 * 3072 * 2944
    True
    """
    has_biases = bool(parameters % (3 * hidden * MXFP4_BLOCK))
    inner = parameters // (3 * hidden + 2) if has_biases else parameters // (3 * hidden)
    widths = zip((hidden, math.ceil(inner / parts)), multiples, strict=True)
    wide, deep = (math.ceil(size / multiple) * multiple for size, multiple in widths)
    biases = (2 * deep + wide) * 16 / FORMATS["mxfp4"].bits if has_biases else 0.0
    return max(3 * wide * deep + biases, parameters / parts)


def _rotary_bytes(deployment: Deployment, profile: EngineProfile) -> float:
    """The table of cosines and sines: context x head width in the activations' format, one for all layers [bytes]."""
    widths = [each.head_dim for _, each in deployment.model.attentions()]
    context = deployment.model.max_context_tokens or 0
    return deployment.activations.bytes_for(context * max(widths, default=0)) if profile.rotary_table else 0.0
