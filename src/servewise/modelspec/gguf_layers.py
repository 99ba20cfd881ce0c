"""The layers of a GGUF file: parameters from their tensors, what a token keeps from the metadata.

What a layer keeps follows llama.cpp's ``load_hparams`` (src/llama-model.cpp, 2025-11): which layers have a window is
code there, not metadata, so it is a table here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from servewise.modelspec.families.network import grouped
from servewise.modelspec.fields import Fields
from servewise.modelspec.gguf import Tensor
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers, WeightPart

FULL_NAMES = (
    "llama mistral3 falcon gptneox gpt2 starcoder starcoder2 bloom stablelm qwen qwen2 qwen2moe qwen2vl "
    "qwen3 qwen3moe qwen3vl qwen3vlmoe phi2 phi3 phimoe internlm2 gemma command-r olmo olmo2 olmoe "
    "chatglm glm4 glm4moe granite granitemoe exaone nemotron smollm3 minimax-m2 deepseek dots1 ernie4_5 "
    "ernie4_5-moe hunyuan-dense hunyuan-moe seed_oss baichuan arcee bailingmoe bailingmoe2"
)
FULL_ATTENTION = frozenset(FULL_NAMES.split())
LATENT_ATTENTION = frozenset({"deepseek2"})
HYBRID_ATTENTION = frozenset({"qwen3next", "qwen35", "qwen35moe", "nemotron_h", "nemotron_h_moe", "granitehybrid"})
# One layer in so many is full, the last of each group; the others have a window.
WINDOW_GROUPS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "llama4": 4, "cohere2": 4, "exaone4": 4, "gemma4": 6}
CHUNK_TOKENS = {"llama4": 8192}  # fixed in llama.cpp
KNOWN = FULL_ATTENTION | LATENT_ATTENTION | HYBRID_ATTENTION | frozenset(WINDOW_GROUPS)

CONSTANTS = ("rope_freqs", "rope_factors")  # tables, not parameters


@dataclass(frozen=True, slots=True)
class Scope:
    """The metadata of one architecture: ``count("block_count")`` reads ``llama.block_count``."""

    fields: Fields
    architecture: str

    def count(self, name: str, default: int | None = None, *, least: int = 1, most: int = 2**31 - 1) -> int:
        """A whole number."""
        return self.fields.count(f"{self.architecture}.{name}", default=default, least=least, most=most)

    def each_layer(self, name: str, layer: int, default: int) -> int:
        """A whole number that may be given a layer at a time."""
        key = f"{self.architecture}.{name}"
        values = self.fields.get(key)
        if not isinstance(values, list):
            return self.fields.count(key, default=default, least=0)
        return Fields({key: values[layer] if layer < len(values) else None}, self.fields.where).count(
            key, default=default, least=0
        )


def read_layers(scope: Scope, tensors: list[list[Tensor]]) -> tuple[Layers, ...]:
    """The layers whose tensors these are, equal ones together; a layer without tensors is noted as missing."""
    empty = next((index for index, each in enumerate(tensors) if not each), None)
    if empty is not None:
        scope.fields.missing(f"tensors of blk.{empty}")
    return grouped(
        (_mixer(scope, index, each), _feed_forward(scope, each), parameters_in(_of_part(each, WeightPart.NORMS)))
        for index, each in enumerate(tensors)
    )


def layer_part(name: str) -> WeightPart:
    """The part of the weights that a layer's tensor belongs to, from its name ``blk.N.STEM.weight``."""
    tail = name.split(".", 2)[2]
    if "_exps" in tail:
        return WeightPart.EXPERTS
    stem = tail.rsplit(".", 1)[0]
    if stem.endswith(("attn_norm", "attn_norm_2", "ffn_norm")) or re.match(r"(post|pre|layer)_.*norm", stem):
        return WeightPart.NORMS
    if stem.startswith(("attn_", "ssm_", "indexer", "shortconv")):
        return WeightPart.ATTENTION
    return WeightPart.FEED_FORWARD


def parameters_in(tensors: Iterable[Tensor]) -> int:
    """Parameters of these tensors; tables of constants are none."""
    return sum(each.parameters for each in tensors if not each.name.startswith(CONSTANTS))


def _of_part(tensors: list[Tensor], part: WeightPart) -> list[Tensor]:
    return [each for each in tensors if layer_part(each.name) is part]


def _feed_forward(scope: Scope, tensors: list[Tensor]) -> FeedForward:
    thick = parameters_in(_of_part(tensors, WeightPart.FEED_FORWARD))
    routed = parameters_in(_of_part(tensors, WeightPart.EXPERTS))
    if not routed:
        return FeedForward(dense_parameters=thick)
    experts = scope.count("expert_count")
    if routed % experts:
        raise scope.fields.wrong(f"{scope.architecture}.expert_count", experts, "the number that the tensors hold")
    return FeedForward(
        dense_parameters=thick,
        experts=experts,
        experts_per_token=scope.count("expert_used_count", most=max(experts, 1)),
        expert_parameters=routed // experts,
    )


def _mixer(scope: Scope, layer: int, tensors: list[Tensor]) -> Attention:
    own = _of_part(tensors, WeightPart.ATTENTION)
    parameters = parameters_in(own)
    stems = {each.name.split(".", 2)[2].rsplit(".", 1)[0] for each in own}
    if not own:
        return Attention(kind=AttentionKind.NONE)
    if any(stem.startswith("ssm_") for stem in stems):
        return _state(scope, parameters)
    if scope.architecture in LATENT_ATTENTION and "attn_k_b" in stems:  # older files keep whole keys and values
        return _latent(scope, parameters)
    return _grouped(scope, layer, parameters)


def _grouped(scope: Scope, layer: int, parameters: int) -> Attention:
    hidden = scope.count("embedding_length")
    heads = scope.each_layer("attention.head_count", layer, 0)
    if not heads:
        scope.fields.missing(f"{scope.architecture}.attention.head_count")
        heads = 1
    kv_heads = scope.each_layer("attention.head_count_kv", layer, heads)
    window = _window(scope, layer)
    suffix = "_swa" if window and scope.fields.has(f"{scope.architecture}.attention.key_length_swa") else ""
    key = scope.count(f"attention.key_length{suffix}", default=max(1, hidden // heads))
    value = scope.count(f"attention.value_length{suffix}", default=key)
    windowed = AttentionKind.CHUNKED if scope.architecture in CHUNK_TOKENS else AttentionKind.SLIDING
    return Attention(
        kind=windowed if window else AttentionKind.FULL,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=key,
        window_tokens=window,
        kv_values_per_token=kv_heads * (key + value),
        score_width=heads * key,
        value_width=heads * value,
        parameters=parameters,
    )


def _window(scope: Scope, layer: int) -> int | None:
    chunk = CHUNK_TOKENS.get(scope.architecture)
    window = chunk or scope.count("attention.sliding_window", default=0, least=0)
    pattern = scope.fields.get(f"{scope.architecture}.attention.sliding_window_pattern")
    group = WINDOW_GROUPS.get(scope.architecture)
    if isinstance(pattern, list) and layer < len(pattern):
        return window or None if pattern[layer] else None
    if group is None or not window:
        return None
    return None if (layer + 1) % group == 0 else window


def _latent(scope: Scope, parameters: int) -> Attention:
    rank, heads = scope.count("attention.kv_lora_rank"), scope.count("attention.head_count")
    rope = scope.count("rope.dimension_count")
    key = scope.count("attention.key_length_mla", default=scope.count("attention.key_length"))
    value = scope.count("attention.value_length_mla", default=scope.count("attention.value_length"))
    return Attention(
        kind=AttentionKind.LATENT,
        heads=heads,
        kv_heads=1,
        head_dim=rank + rope,
        kv_values_per_token=rank + rope,
        score_width=heads * key,
        value_width=heads * value,
        absorbed_score_width=heads * (rank + rope),
        absorbed_value_width=heads * rank,
        parameters=parameters,
    )


def _state(scope: Scope, parameters: int) -> Attention:
    """A recurrent layer: llama.cpp keeps state_size x inner_size values, and the convolution's last inputs."""
    inner, state = scope.count("ssm.inner_size"), scope.count("ssm.state_size")
    groups, kernel = scope.count("ssm.group_count", default=1), scope.count("ssm.conv_kernel")
    return Attention(
        kind=AttentionKind.STATE,
        heads=scope.count("ssm.time_step_rank", default=1),
        state_values=inner * state,
        convolution_values=(inner + 2 * groups * state) * (kernel - 1),
        parameters=parameters,
    )
