"""The KV pool of one accelerator: bytes a token, bytes a sequence, as heads, windows, states and blocks make them."""

from __future__ import annotations

import math
from dataclasses import replace

from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import EngineProfile
from servewise.deployment.reserves import largest_step
from servewise.modelspec.kv import kv_bytes_per_token_per_rank, layer_kv_bytes_per_token, state_bytes_per_sequence
from servewise.modelspec.spec import Attention, ModelSpec


def rank_layer_kv_bytes(deployment: Deployment, attention: Attention) -> float:
    """KV bytes that one token takes in one layer on one accelerator [bytes]; DCP ranks share out the tokens."""
    split = deployment.parallelism
    return layer_kv_bytes_per_token(attention, deployment.kv, split.tensor) / split.decode_context


def rank_kv_bytes_per_token(deployment: Deployment, share: float) -> float:
    """KV bytes of one token in ``share`` of all layers on one accelerator, windowed layers in full [bytes]."""
    split = deployment.parallelism
    return share * kv_bytes_per_token_per_rank(deployment.model, deployment.kv, split.tensor, split.decode_context)


def rank_kv_bytes_per_sequence(
    deployment: Deployment, profile: EngineProfile, context_tokens: int, block_tokens: int, share: float
) -> float:
    """KV bytes of one sequence in ``share`` of all layers on one accelerator, in whole blocks [bytes]."""
    group = _group_layers(deployment, profile)
    held = sum(
        math.ceil(count / group)
        * group
        * rank_layer_kv_bytes(deployment, each)
        * held_tokens(deployment, profile, each, context_tokens, block_tokens)
        for each, count in _layers_by_kind(deployment.model).items()
    )
    return share * (held + state_bytes_per_sequence(deployment.model, deployment.parallelism.tensor))


def held_tokens(
    deployment: Deployment, profile: EngineProfile, attention: Attention, context_tokens: int, block_tokens: int
) -> int:
    """Tokens that one layer keeps of a sequence, in whole blocks.

    ``paged`` windows keep the window less one, the tokens of one step and a block that is only partly inside
    (vllm/v1/kv_cache_interface.py SlidingWindowSpec.max_memory_usage_bytes, v0.11).
    """
    window = attention.window_tokens
    if window is None or profile.windows == "full":
        return _whole_blocks(context_tokens, block_tokens)
    if profile.windows == "windowed":
        return _whole_blocks(min(window, context_tokens), block_tokens)
    inside = min(window - 1 + largest_step(deployment, profile).tokens, context_tokens)
    return min(_whole_blocks(inside, block_tokens) + block_tokens, _whole_blocks(context_tokens, block_tokens))


def _whole_blocks(tokens: int, block_tokens: int) -> int:
    return math.ceil(tokens / block_tokens) * block_tokens


def _layers_by_kind(model: ModelSpec) -> dict[Attention, int]:
    """Layers with a KV cache, groups with an equal token mixer added up."""
    kinds: dict[Attention, int] = {}
    for count, each in model.attentions():
        if each.kv_values_per_token:
            alike = replace(each, parameters=0)
            kinds[alike] = kinds.get(alike, 0) + count
    return kinds


def _group_layers(deployment: Deployment, profile: EngineProfile) -> int:
    """Layers of one group of vLLM's hybrid manager, 1 where there are no groups.

    The smallest kind's count, or the largest's where they are within a quarter of each other
    (vllm/v1/core/kv_cache_utils.py _get_kv_cache_groups_uniform_page_size, v0.11).
    """
    counts = _layers_by_kind(deployment.model).values()
    windowed = any(each.window_tokens for _, each in deployment.model.attentions())
    if profile.windows != "paged" or not windowed or len(counts) < 2:
        return 1
    return max(counts) if max(counts) < 1.25 * min(counts) else min(counts)
