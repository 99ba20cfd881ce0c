"""What an engine holds beside weights and KV cache: activations at their peak, graphs, runtime, collectives."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import EngineProfile
from servewise.deployment.shard import Stage
from servewise.modelspec.spec import FeedForward, Layers

UNIFIED = frozenset({"gb10"})
SWITCHED_BYTES_PER_S = 100e9  # PCIe 5 x16 is 64 GB/s a direction, NVLink 3 to a switch 300


@dataclass(frozen=True, slots=True)
class Batch:
    """The largest step that memory is kept for: tokens and sequences."""

    tokens: int
    sequences: int


def largest_step(deployment: Deployment, profile: EngineProfile) -> Batch:
    """The step that the engine's profile run takes: what the limits say, else the engine's defaults."""
    limits, defaults = deployment.limits, profile.batch_defaults(deployment.accelerator)
    context = limits.max_context_tokens or deployment.model.max_context_tokens or defaults.max_batched_tokens
    tokens = limits.max_batched_tokens or defaults.max_batched_tokens
    if profile.whole_prompt and not limits.max_batched_tokens and context <= profile.chunk_above_context:
        tokens = max(context, defaults.max_batched_tokens)
    return Batch(tokens, min(limits.max_sequences or defaults.max_sequences, tokens))


def memory_utilization(deployment: Deployment, profile: EngineProfile) -> float:
    """The share of memory that the engine may take: the limit given, else the engine's default."""
    if deployment.limits.memory_utilization is not None:
        return deployment.limits.memory_utilization
    step = largest_step(deployment, profile)
    return profile.utilization(deployment.accelerator, deployment.parallelism, step.tokens, step.sequences)


def activation_bytes(deployment: Deployment, profile: EngineProfile, stage: Stage) -> float:
    """Peak of the activations in the profile run on one rank of ``stage`` [bytes].

    The larger of the forward pass, tokens x (hidden_copies x hidden + widest layer) x activation bytes, and of
    sampling after it, rows x vocabulary x logit bytes + tokens x hidden x activation bytes. The widest layer is the
    larger of attention and feed-forward, each counted as its matrices' summed output widths, parameters / hidden,
    over the tensor-parallel ranks; a mixture's experts hold their widths for every chosen expert and one hidden row
    each (vLLM fused_moe intermediate caches). Only the last stage samples. Left out: attention workspaces and
    multimodal encoders.
    """
    if not profile.hidden_copies:
        return 0.0
    model, step = deployment.model, largest_step(deployment, profile)
    widest = max((_layer_width(model.hidden_size, group, deployment) for group in model.layers), default=0.0)
    forward = step.tokens * (profile.hidden_copies * model.hidden_size + widest)
    rows = step.tokens if profile.logit_rows_are_tokens else step.sequences
    sampling = rows * model.vocab_size * profile.logit_bytes
    value = profile.value_bytes or deployment.activations.bits / 8
    hidden = value * step.tokens * model.hidden_size
    kept = 2 * stage.layers * hidden if profile.keeps_reduced and deployment.parallelism.tensor > 1 else 0.0
    workspace = index_workspace_bytes(deployment, profile)
    return max(value * forward, stage.last * (sampling + hidden)) + kept + workspace


def _layer_width(hidden: int, group: Layers, deployment: Deployment) -> float:
    tensor = deployment.parallelism.tensor
    attention = group.attention.parameters / hidden / tensor
    return max(attention, _feed_forward_width(hidden, group.feed_forward, tensor))


def _feed_forward_width(hidden: int, feed_forward: FeedForward, tensor: int) -> float:
    dense = feed_forward.dense_parameters / hidden / tensor
    chosen = feed_forward.expert_parameters / hidden / tensor + hidden
    return dense + feed_forward.experts_per_token * (chosen if feed_forward.experts else 0)


def graph_bytes(deployment: Deployment, profile: EngineProfile) -> float:
    """Memory of captured CUDA graphs as the engine estimates it: graphs x bytes each, more where devices are joined.

    Piecewise graphs are captured up to twice the sequences, full ones up to the sequences, 512 at most
    (vllm/config/compilation.py, v0.12; "Profiling CUDA graph memory: PIECEWISE=51, FULL=35" at 256 sequences).
    """
    if not deployment.limits.cuda_graphs:
        return 0.0
    sequences = largest_step(deployment, profile).sequences
    graphs = captured_sizes(2 * sequences) + captured_sizes(sequences)
    joined = deployment.parallelism.tensor > 1
    return graphs * (profile.split_graph_bytes_each if joined else profile.graph_bytes_each)


def captured_sizes(largest: int) -> int:
    """Batch sizes up to ``largest`` that vLLM captures: 1, 2, 4, every eighth to 256, every sixteenth to 512.

    >>> captured_sizes(512), captured_sizes(256), captured_sizes(2048)
    (51, 35, 51)
    """
    within = min(largest, 512)
    small = sum(size <= within for size in (1, 2, 4))
    return small + min(within, 256) // 8 + max(0, within - 256) // 16


def index_workspace_bytes(deployment: Deployment, profile: EngineProfile) -> float:
    """The buffer in which a sparse indexer gathers keys of a prefill: 40 x the longest context x 132 B in vLLM.

    Source: vllm/v1/attention/backends/mla/indexer.py get_max_prefill_buffer_size, v0.11.
    """
    context = deployment.limits.max_context_tokens or deployment.model.max_context_tokens or 0
    keys = [each.extra_kv_bytes_per_token for _, each in deployment.model.attentions() if each.attended_tokens]
    return profile.index_entries_per_context * context * max(keys, default=0)


def runtime_bytes(deployment: Deployment, profile: EngineProfile) -> float:
    """CUDA context and libraries, as the era counts them [bytes].

    Where memory is the host's too (GB10), the host's own use grows with the load and is counted.
    """
    if profile.unified_runtime_bytes is not None and deployment.accelerator.name in UNIFIED:
        return profile.unified_runtime_bytes
    return profile.runtime_bytes


def collective_bytes(deployment: Deployment, profile: EngineProfile) -> float:
    """Buffers of NCCL and of the custom all-reduce, where accelerators talk to each other [bytes].

    Switched links (NVLink, Infinity Fabric) take more: multicast and symmetric buffers.
    """
    link = deployment.accelerator.link
    if deployment.parallelism.accelerators == 1:
        return 0.0
    switched = link is not None and link.bandwidth.value >= SWITCHED_BYTES_PER_S
    return profile.switched_collective_bytes if switched else profile.collective_bytes
