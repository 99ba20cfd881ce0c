"""What one step moves and computes on one accelerator: the bytes and FLOPs that every estimator starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from servewise.deployment.deployment import Deployment, Parallelism
from servewise.modelspec.flops import attention_flops_per_pair, head_flops_per_token
from servewise.modelspec.kv import kv_read_bytes_per_token, state_bytes_per_sequence
from servewise.modelspec.spec import FeedForward, Layers, WeightPart
from servewise.modelspec.weights import part_bytes, part_parameters
from servewise.precision import Precision
from servewise.steptime.shape import StepShape


class Experts(NamedTuple):
    """Weights that a step reads: ``bytes`` that the rank holds, and the chance that a token leaves a given part unread.

    A step of n tokens reads ``bytes`` x (1 - ``unread`` ** n): of routed experts the expected distinct ones under even
    routing, E (1 - (1 - k/E)^n); of dense weights (``unread`` 0) all. Real routing is uneven and reads fewer.
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
    decode_flops_per_pair: float
    decode_flops_per_windowed_pair: float

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

    def flops(self, shape: StepShape) -> float:
        """All FLOPs of a step [FLOP]; a decoding sequence has as many query-key pairs as context tokens."""
        linear = self.flops_per_token * shape.tokens + self.head_flops_per_row * shape.logit_rows
        prefill = (
            self.flops_per_pair * shape.prefill_pairs + self.flops_per_windowed_pair * shape.prefill_windowed_pairs
        )
        decode = self.decode_flops_per_pair * shape.decode_context_tokens
        return linear + prefill + decode + self.decode_flops_per_windowed_pair * shape.decode_windowed_tokens


def work_of(deployment: Deployment) -> Work:
    """The work of ``deployment`` on one accelerator.

    Tensor parallelism shares out everything evenly, save KV heads that are fewer than the ranks, MLA's latent, and the
    parameters that every rank holds whole. Decode context parallelism shares out the tokens of the KV cache.
    """
    model, parallelism = deployment.model, deployment.parallelism
    tensor, kv = parallelism.tensor, deployment.kv
    bits = stored_bits(deployment)
    table = WeightPart.EMBEDDING if model.tied else WeightPart.HEAD
    outer = model.hidden_size * model.vocab_size
    return Work(
        dense_weight_bytes=sum(group.count * _dense_bytes(group, bits, tensor) for group in model.layers),
        head_bytes=(model.head_parameters or outer) * bits[table] / 8 / tensor,
        embedding_bytes_per_token=model.hidden_size * bits[WeightPart.EMBEDDING] / 8 / tensor,
        experts=tuple(
            experts_of(group.feed_forward, parallelism, bits[WeightPart.EXPERTS], group.count)
            for group in model.layers
            if group.feed_forward.experts
        ),
        kv_bytes_per_token=kv_read_bytes_per_token(model, kv, windowed=False, tensor=tensor)
        / parallelism.decode_context,
        windowed_kv_bytes_per_token=kv_read_bytes_per_token(model, kv, windowed=True, tensor=tensor)
        / parallelism.decode_context,
        state_bytes_per_sequence=2.0 * state_bytes_per_sequence(model, tensor),
        flops_per_token=sum(group.count * _flops_per_token(group, tensor) for group in model.layers),
        head_flops_per_row=head_flops_per_token(model) / tensor,
        flops_per_pair=attention_flops_per_pair(model, windowed=False) / tensor,
        flops_per_windowed_pair=attention_flops_per_pair(model, windowed=True) / tensor,
        decode_flops_per_pair=attention_flops_per_pair(model, windowed=False, absorbed=True) / tensor,
        decode_flops_per_windowed_pair=attention_flops_per_pair(model, windowed=True, absorbed=True) / tensor,
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


def stored_bits(deployment: Deployment) -> Mapping[WeightPart, float]:
    """Mean bits a parameter of each part as stored."""
    counts = part_parameters(deployment.model)
    sizes = part_bytes(deployment.model, deployment.weights)
    return {part: 8.0 * sizes.get(part, 0.0) / count if count else 0.0 for part, count in counts.items()}


def attention_parameters_on_rank(group: Layers, tensor: int) -> float:
    """Attention parameters of one layer that one of ``tensor`` ranks holds."""
    whole = min(group.attention.replicated_parameters, group.attention.parameters)
    return (group.attention.parameters - whole) / tensor + whole


def _dense_bytes(group: Layers, bits: Mapping[WeightPart, float], tensor: int) -> float:
    attention = attention_parameters_on_rank(group, tensor) * bits[WeightPart.ATTENTION]
    dense = group.feed_forward.dense_parameters * bits[WeightPart.FEED_FORWARD]
    return (attention + (dense + group.norm_parameters * bits[WeightPart.NORMS]) / tensor) / 8


def _flops_per_token(group: Layers, tensor: int) -> float:
    """FLOPs of one layer's products and states for one token on one rank (``layer_linear_flops_per_token``)."""
    shared = group.feed_forward.active_parameters + group.norm_parameters + 2 * group.attention.state_values
    return 2.0 * (attention_parameters_on_rank(group, tensor) + shared / tensor)


def experts_of(part: FeedForward, parallelism: Parallelism, bits: float, layers: int = 1) -> Experts:
    """The routed experts that one rank holds of ``layers`` layers.

    With expert parallelism the data-parallel replicas share them: each rank holds fewer, and the tokens of all replicas
    (each as many as this one's) call on them.
    """
    sharers = parallelism.data if parallelism.expert else 1
    stored = layers * part.experts * part.expert_parameters * bits / 8
    unread = max(0.0, 1.0 - part.experts_per_token / part.experts) ** sharers
    return Experts(stored / (parallelism.tensor * sharers), unread)
