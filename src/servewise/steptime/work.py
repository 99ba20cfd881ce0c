"""What one step moves and computes on one accelerator: the bytes and FLOPs that every estimator starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from servewise.deployment.deployment import Deployment
from servewise.modelspec.flops import attention_flops_per_pair, head_flops_per_token, layer_linear_flops_per_token
from servewise.modelspec.kv import STATE_BYTES_PER_VALUE, layer_kv_bytes_per_token
from servewise.modelspec.spec import Attention, AttentionKind, ModelSpec
from servewise.modelspec.weights import quantised_parameters
from servewise.precision import Precision
from servewise.steptime.shape import StepShape


class Experts(NamedTuple):
    """Routed experts: ``bytes`` that the rank holds, and the chance that a token leaves a given expert unread.

    A step of n tokens reads ``bytes`` x (1 - ``unread`` ** n): the expected distinct experts under even routing,
    E (1 - (1 - k/E)^n). Real routing is uneven and reads fewer.
    """

    bytes: float
    unread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Bytes and FLOPs of one step on one accelerator, by what they grow with; pipeline stages summed.

    Weights are read once a step, KV entries read (or, the new tokens', written) once, recurrent states read and
    written once. The embedding table is gathered: one row a token. The head is read and computed only for
    positions whose logits are wanted. Activations are left out (a few percent of a large prefill).
    """

    dense_weight_bytes: float
    head_bytes: float
    embedding_bytes_per_token: float
    experts: tuple[Experts, ...]
    kv_bytes_per_token: float
    windowed_kv_bytes_per_token: float
    state_bytes_per_sequence: float
    flops_per_token: float
    head_flops_per_row: float
    flops_per_pair: float
    flops_per_windowed_pair: float

    def weight_bytes(self, tokens: int, logit_rows: int) -> float:
        """Weight bytes that a step of ``tokens`` new tokens reads [bytes]."""
        read = self.dense_weight_bytes + self.embedding_bytes_per_token * tokens
        read += sum(each.bytes * (1.0 - each.unread**tokens) for each in self.experts)
        return read + (self.head_bytes if logit_rows else 0.0)

    def kv_bytes(self, shape: StepShape) -> float:
        """KV bytes that a step reads and writes, recurrent states included [bytes]."""
        full = shape.decode_context_tokens + shape.prefill_context_tokens
        windowed = shape.decode_windowed_tokens + shape.prefill_windowed_tokens
        sequences = shape.decode_sequences + shape.prefill_sequences
        kept = self.kv_bytes_per_token * full + self.windowed_kv_bytes_per_token * windowed
        return kept + self.state_bytes_per_sequence * sequences

    def linear_flops(self, shape: StepShape) -> float:
        """FLOPs of the layers' matrix products [FLOP]."""
        return self.flops_per_token * shape.tokens

    def head_flops(self, shape: StepShape) -> float:
        """FLOPs of the output projection [FLOP]."""
        return self.head_flops_per_row * shape.logit_rows

    def attention_flops(self, shape: StepShape) -> float:
        """FLOPs of scores and weighted values [FLOP]; a decoding sequence has as many pairs as context tokens."""
        full = shape.decode_context_tokens + shape.prefill_pairs
        windowed = shape.decode_windowed_tokens + shape.prefill_windowed_pairs
        return self.flops_per_pair * full + self.flops_per_windowed_pair * windowed


def work_of(deployment: Deployment) -> Work:
    """The work of ``deployment`` on one accelerator.

    Tensor parallelism shares out everything evenly, save KV heads that are fewer than the ranks and MLA's latent
    (replicated weights, such as MLA's down-projections, are taken as shared: under 3% of the bytes).
    """
    model, tensor = deployment.model, deployment.parallelism.tensor
    dense_bits, expert_bits, outer_bits = _bits(deployment)
    head_values = model.head_parameters or model.hidden_size * model.vocab_size
    return Work(
        dense_weight_bytes=_dense_parameters(model) * dense_bits / 8 / tensor,
        head_bytes=head_values * outer_bits / 8 / tensor,
        embedding_bytes_per_token=model.hidden_size * outer_bits / 8 / tensor,
        experts=_experts(deployment, expert_bits),
        kv_bytes_per_token=_rank_kv_bytes(deployment, windowed=False),
        windowed_kv_bytes_per_token=_rank_kv_bytes(deployment, windowed=True),
        state_bytes_per_sequence=2.0 * STATE_BYTES_PER_VALUE * _states(model) / tensor,
        flops_per_token=layer_linear_flops_per_token(model) / tensor,
        head_flops_per_row=head_flops_per_token(model) / tensor,
        flops_per_pair=attention_flops_per_pair(model, windowed=False) / tensor,
        flops_per_windowed_pair=attention_flops_per_pair(model, windowed=True) / tensor,
    )


class ComputeFormats(NamedTuple):
    """The formats in which a step's products are computed: layers, head, attention."""

    linear: str
    head: str
    attention: str


def compute_formats(deployment: Deployment) -> ComputeFormats:
    """The formats of the operands: a product runs in the wider of its two (weight-only fp8 computes in bf16)."""
    weights, activations = deployment.stored_weights, deployment.activations
    head = weights if weights.bits >= 16 else deployment.model.dtype
    return ComputeFormats(
        linear=_wider(weights, activations),
        head=head.compute,
        attention=_wider(deployment.kv, activations),
    )


def _wider(stored: Precision, activations: Precision) -> str:
    return stored.compute if activations.bits <= stored.bits else activations.compute


def _expert_parameters(model: ModelSpec) -> int:
    return sum(
        group.count * group.feed_forward.experts * group.feed_forward.expert_parameters for group in model.layers
    )


def _dense_parameters(model: ModelSpec) -> int:
    return sum(group.count * group.parameters for group in model.layers) - _expert_parameters(model)


def _bits(deployment: Deployment) -> tuple[float, float, float]:
    """Mean bits a parameter of the dense layer parts, of the experts, and of embedding and head."""
    model, low = deployment.model, deployment.stored_weights
    if low.bits >= 16:
        return low.bits, low.bits, low.bits
    expert, dense = _expert_parameters(model), _dense_parameters(model)
    named = None if deployment.weights else model.quantised_parameters
    quantised = quantised_parameters(model) if named is None else named
    expert_share = min(1.0, quantised / expert) if expert else 0.0
    dense_share = min(1.0, max(0, quantised - expert) / dense) if dense else 0.0
    wide = model.dtype.bits
    return (
        dense_share * low.bits + (1 - dense_share) * wide,
        expert_share * low.bits + (1 - expert_share) * wide,
        wide,
    )


def _experts(deployment: Deployment, bits: float) -> tuple[Experts, ...]:
    parallelism = deployment.parallelism
    sharers = parallelism.data if parallelism.expert else 1
    found = []
    for group in deployment.model.layers:
        part = group.feed_forward
        if part.experts:
            stored = group.count * part.experts * part.expert_parameters * bits / 8
            unread = max(0.0, 1.0 - part.experts_per_token / part.experts) ** sharers
            found.append(Experts(stored / (parallelism.tensor * sharers), unread))
    return tuple(found)


def _rank_kv_bytes(deployment: Deployment, *, windowed: bool) -> float:
    tensor = deployment.parallelism.tensor
    return sum(
        count * layer_kv_bytes_per_token(each, deployment.kv) * kv_share(each, tensor)
        for count, each in deployment.model.attentions()
        if bool(each.window_tokens) == windowed
    )


def kv_share(attention: Attention, tensor: int) -> float:
    """The share of a layer's KV that one of ``tensor`` ranks holds: MLA's latent whole, at least one KV head."""
    if not attention.splits_by_tensor_parallel:
        return 1.0
    return max(1.0 / tensor, 1.0 / attention.kv_heads) if attention.kv_heads else 1.0 / tensor


def _states(model: ModelSpec) -> int:
    return sum(count * each.state_values for count, each in model.attentions() if each.kind is AttentionKind.STATE)
