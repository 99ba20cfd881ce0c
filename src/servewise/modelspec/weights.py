"""Weight bytes: as the checkpoint stores them, or in a precision that is asked for."""

from __future__ import annotations

from servewise.modelspec.spec import ModelSpec
from servewise.precision import Precision


def weight_bytes(model: ModelSpec, weights: Precision | None = None) -> float:
    """Bytes of all weights [bytes].

    ``weights`` None: the checkpoint's own formats, by part. Otherwise quantised formats (below 16 bits) apply to
    the layers' matrices, while embedding, head and norms keep the checkpoint's dtype, as engines load them; 16
    bits and above apply to everything.
    """
    low = weights or model.weights
    if low.bits >= 16:
        return low.bytes_for(model.parameters)
    quantised = quantised_parameters(model) if weights else model.quantised_parameters
    if quantised is None:
        quantised = quantised_parameters(model)
    return low.bytes_for(quantised) + model.dtype.bytes_for(model.parameters - quantised)


def quantised_parameters(model: ModelSpec) -> int:
    """Parameters that weight quantisation touches: the layers' matrices."""
    return sum(group.count * (group.attention.parameters + group.feed_forward.parameters) for group in model.layers)
