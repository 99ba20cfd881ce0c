"""A weight matrix as something that multiplies. Legend: T tokens, I inputs, O outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Linear = Callable[[Tensor], Tensor]
"""(T, I) to (T, O)."""

LinearMaker = Callable[[str, Tensor, Tensor | None], Linear]
"""Makes the product with one weight (name, (O, I), bias of O or None); fused weights have their parts' rows stacked.

Names: ``model.layers.N.self_attn.qkv_proj`` and ``o_proj``, ``model.layers.N.mlp.gate_up_proj`` and ``down_proj``,
``lm_head``.
"""


class DenseLinear:
    """``x W^T + b`` in the weight's dtype by PyTorch's own product."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        self.weight_OI, self.bias_O = weight_OI, bias_O

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O)."""
        return functional.linear(x_TI, self.weight_OI, self.bias_O)


def dense(name: str, weight_OI: Tensor, bias_O: Tensor | None) -> Linear:
    """The plain product, whatever the weight is called."""
    del name
    return DenseLinear(weight_OI, bias_O)


def silu_times(gate_up_TI: Tensor) -> Tensor:
    """SwiGLU's middle: ``silu(gate) * up`` of the two halves (Shazeer 2020)."""
    gate, up = gate_up_TI.chunk(2, -1)
    return functional.silu(gate).mul_(up)


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """``x / rms(x) * weight`` over the last dimension (Zhang and Sennrich 2019), in float32 at least."""
    return torch.rms_norm(x, (x.shape[-1],), weight, epsilon)
