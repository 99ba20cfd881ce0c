"""The KV pool of one accelerator: bytes a token, bytes a sequence, as heads, windows, states and blocks make them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import EngineProfile
from servewise.deployment.reserves import largest_step
from servewise.modelspec.kv import CONVOLUTION, STATE, kv_bytes_per_token_per_rank, layer_kv_bytes_per_token
from servewise.modelspec.spec import Attention, AttentionKind, ModelSpec


def rank_layer_kv_bytes(deployment: Deployment, attention: Attention) -> float:
    """KV bytes that one token takes in one layer on one accelerator [bytes]; DCP ranks share out the tokens."""
    split = deployment.parallelism
    return layer_kv_bytes_per_token(attention, deployment.kv, split.tensor) / split.decode_context


def rank_kv_bytes_per_token(deployment: Deployment, share: float) -> float:
    """KV bytes of one token in ``share`` of all layers on one accelerator, windowed layers in full [bytes]."""
    split = deployment.parallelism
    return share * kv_bytes_per_token_per_rank(deployment.model, deployment.kv, split.tensor, split.decode_context)


def pool_block_tokens(deployment: Deployment, profile: EngineProfile) -> int:
    """Tokens of one block: as stated, else the engine's; where states are paged too, at least as large as a state.

    vLLM raises the attention block to the next multiple of 16 whose page holds one layer's state, which it pads to
    that page (vllm/model_executor/models/config.py HybridAttentionMambaModelConfig, v0.11: "Setting attention block
    size to N tokens to ensure that attention page size is >= mamba page size").
    """
    block = deployment.limits.block_tokens or profile.block_tokens
    kinds = _layers_by_kind(deployment.model)
    states = [rank_state_bytes(deployment, each) for each in kinds if each.kind is AttentionKind.STATE]
    tokens = [size for size in (rank_layer_kv_bytes(deployment, each) for each in kinds) if size]
    if profile.windows != "paged" or not states or not tokens:
        return block
    return max(block, _whole_blocks(math.ceil(max(states) / min(tokens)), 16))


def rank_state_bytes(deployment: Deployment, attention: Attention) -> float:
    """Bytes that one layer keeps of a sequence whatever its length, on one accelerator [bytes]."""
    values = STATE.bytes_for(attention.state_values) + CONVOLUTION.bytes_for(attention.convolution_values)
    return values / deployment.parallelism.tensor


def rank_kv_bytes_per_sequence(
    deployment: Deployment, profile: EngineProfile, context_tokens: int, block_tokens: int, share: float
) -> float:
    """KV bytes of one sequence in ``share`` of all layers on one accelerator, in whole blocks [bytes]."""
    kinds = _layers_by_kind(deployment.model)
    group = _group_layers(kinds, profile)
    page = max((rank_layer_kv_bytes(deployment, each) * block_tokens for each in kinds), default=0.0)
    held = 0.0
    for each, count in kinds.items():
        if each.kind is AttentionKind.STATE:
            one = max(rank_state_bytes(deployment, each), page if profile.windows == "paged" else 0.0)
        else:
            tokens = held_tokens(deployment, profile, each, context_tokens, block_tokens)
            one = rank_layer_kv_bytes(deployment, each) * tokens
        held += math.ceil(count / group) * group * one
    return share * held


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
    """Layers that keep anything, groups with an equal token mixer added up."""
    kinds: dict[Attention, int] = {}
    for count, each in model.attentions():
        if each.kv_values_per_token or each.state_values:
            alike = replace(each, parameters=0)
            kinds[alike] = kinds.get(alike, 0) + count
    return kinds


def _group_layers(kinds: Mapping[Attention, int], profile: EngineProfile) -> int:
    """Layers of one group of vLLM's hybrid manager, 1 where there are no groups.

    The smallest kind's count, or the largest's where they are within a quarter of each other
    (vllm/v1/core/kv_cache_utils.py _get_kv_cache_groups_uniform_page_size, v0.11).
    """
    mixed = any(each.window_tokens or each.state_values for each in kinds)
    if profile.windows != "paged" or not mixed or len(kinds) < 2:
        return 1
    counts = kinds.values()
    return max(counts) if max(counts) < 1.25 * min(counts) else min(counts)
