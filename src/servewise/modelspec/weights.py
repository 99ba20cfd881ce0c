"""Weight bytes: as the checkpoint stores them, or in a precision that is asked for; in all, or those a step reads."""

from __future__ import annotations

from servewise.modelspec.spec import ModelSpec, WeightPart
from servewise.precision import Precision

LAYER_PARTS = frozenset({WeightPart.ATTENTION, WeightPart.FEED_FORWARD, WeightPart.EXPERTS})


def weight_bytes(model: ModelSpec, weights: Precision | None = None) -> float:
    """Bytes of all weights [bytes].

    ``weights`` None: as the checkpoint stores them, to the byte where it says so. Otherwise quantised formats
    (below 16 bits) apply to the layers' matrices, while embedding, head and norms keep the checkpoint's dtype, as
    engines load them; 16 bits and above apply to everything.
    """
    if _as_stored(model, weights) and model.checkpoint_bytes is not None:
        return float(model.checkpoint_bytes)
    return sum(part_bytes(model, weights).values())


def part_bytes(model: ModelSpec, weights: Precision | None = None) -> dict[WeightPart, float]:
    """The bytes of each part of the weights [bytes], in the formats of ``weight_bytes``."""
    if _as_stored(model, weights) and model.stored_bytes:
        return {part: float(size) for part, size in model.stored_bytes}
    counts = part_parameters(model)
    return {part: part_precision(model, part, weights).bytes_for(count) for part, count in counts.items()}


def part_parameters(model: ModelSpec) -> dict[WeightPart, int]:
    """The parameters of each part; they sum to ``model.parameters`` and, beside it, ``model.tower_parameters``."""
    layers = model.layers
    return {
        WeightPart.EMBEDDING: model.embedding_parameters,
        WeightPart.ATTENTION: sum(each.count * each.attention.parameters for each in layers),
        WeightPart.FEED_FORWARD: sum(each.count * each.feed_forward.dense_parameters for each in layers),
        WeightPart.EXPERTS: sum(
            each.count * each.feed_forward.experts * each.feed_forward.expert_parameters for each in layers
        ),
        WeightPart.NORMS: sum(each.count * each.norm_parameters for each in layers) + model.final_norm_parameters,
        WeightPart.HEAD: model.head_parameters,
        WeightPart.TOWER: model.tower_parameters,
    }


def part_precision(model: ModelSpec, part: WeightPart, weights: Precision | None = None) -> Precision:
    """The format in which ``part`` is stored."""
    if _as_stored(model, weights):
        own = dict(model.part_formats).get(part)
        if own is not None:
            return own
        low, stored = model.weights, model.quantised_parts
        parts = LAYER_PARTS if stored is None else stored
    else:
        low, parts = weights or model.weights, LAYER_PARTS
    return low if low.bits >= 16 or part in parts else model.dtype


def _as_stored(model: ModelSpec, weights: Precision | None) -> bool:
    return weights is None or weights == model.weights


def quantised_parameters(model: ModelSpec) -> int:
    """Parameters that weight quantisation touches: the layers' matrices."""
    return sum(group.count * (group.attention.parameters + group.feed_forward.parameters) for group in model.layers)


def expected_experts(experts: int, per_token: int, tokens: float) -> float:
    """Experts that a batch of ``tokens`` touches when each picks ``per_token`` of ``experts`` at random.

    E (1 - (1 - k/E)^n). Real routers are uneven and touch fewer.

    >>> expected_experts(128, 8, 1), round(expected_experts(128, 8, 16), 1)
    (8.0, 82.4)
    """
    return experts * (1 - (1 - per_token / experts) ** tokens) if experts else 0.0


def weight_bytes_read(
    model: ModelSpec, tokens: int, weights: Precision | None = None, *, logit_rows: int | None = None
) -> float:
    """Weight bytes that a step of ``tokens`` new tokens reads [bytes].

    Every matrix once; of routed experts those that ``tokens`` touch (``expected_experts``); of the embedding one row a
    token; the head (or the tied table) only where ``logit_rows`` (None: some) are wanted.
    """
    parts = part_bytes(model, weights)
    table = parts[WeightPart.EMBEDDING]
    rows = min(tokens / model.vocab_size, 1.0) * table
    head = 0.0 if logit_rows == 0 else table if model.tied else parts[WeightPart.HEAD]
    fixed = parts[WeightPart.ATTENTION] + parts[WeightPart.FEED_FORWARD] + parts[WeightPart.NORMS]
    return fixed + rows + head + parts[WeightPart.EXPERTS] * touched_share(model, tokens)


def touched_share(model: ModelSpec, tokens: float) -> float:
    """The share of all routed experts' weights that ``tokens`` tokens touch; 0 without experts."""
    touched = total = 0.0
    for group in model.layers:
        part = group.feed_forward
        each = group.count * part.expert_parameters
        touched += each * expected_experts(part.experts, part.experts_per_token, tokens)
        total += each * part.experts
    return touched / total if total else 0.0
