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
    """``x W^T + b`` in the weight's dtype by PyTorch's own product.

    In 16 bits on a CPU the weight is reordered once for oneDNN's kernels (AMX, AVX-512), which ``functional.linear``
    does at every call.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        self.bias_O = bias_O
        self._reordered = _reorders(weight_OI)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight_OI.contiguous()) if self._reordered else weight_OI

    @property
    def weight_OI(self) -> Tensor:  # noqa: N802 (a tensor with its shape)
        """The weight; a copy where it is kept reordered."""
        return self._weight.to_dense() if self._reordered else self._weight

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O)."""
        if self._reordered and len(x_TI):
            product: Tensor = torch.ops.mkldnn._linear_pointwise(x_TI, self._weight, self.bias_O, "none", [], "")
            return product
        return functional.linear(x_TI, self.weight_OI, self.bias_O)


def dense(name: str, weight_OI: Tensor, bias_O: Tensor | None) -> Linear:
    """The plain product, whatever the weight is called."""
    del name
    return DenseLinear(weight_OI, bias_O)


def _reorders(weight_OI: Tensor) -> bool:
    if weight_OI.device.type != "cpu" or not torch.backends.mkldnn.enabled:
        return False
    if weight_OI.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight_OI.dtype == torch.float16 and bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())


def silu_times(gate_up_TI: Tensor) -> Tensor:
    """SwiGLU's middle: ``silu(gate) * up`` of the two halves (Shazeer 2020)."""
    gate, up = gate_up_TI.chunk(2, -1)
    return functional.silu(gate).mul_(up)


def norm_weight(weight: Tensor) -> Tensor:
    """A norm's weight as ``rms_norm`` wants it: in float32 at least."""
    return weight.float() if weight.dtype in (torch.bfloat16, torch.float16) else weight


def rms_norm(x: Tensor, weight: Tensor, epsilon: float, dtype: torch.dtype) -> Tensor:
    """``x / rms(x) * weight`` over the last dimension (Zhang and Sennrich 2019), rounded to ``dtype``.

    ``weight`` is float32 or float64; computed in that. Few small operations: PyTorch's own ``rms_norm`` is made of
    twice as many on CPUs.
    """
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=weight.dtype)
    scale = (length * length).div_(x.shape[-1]).add_(epsilon).rsqrt_()
    normed: Tensor = (x * scale).mul_(weight)
    return normed.to(dtype)
