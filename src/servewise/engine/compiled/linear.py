"""A product with a weight packed for the compiled kernels.

Legend: T tokens, I inputs, O outputs, B blocks of 16 outputs.
"""

from __future__ import annotations

from ctypes import CDLL, byref

import torch
from torch import Tensor
from torch.nn import functional

from servewise.engine.compiled.arena import Arena
from servewise.engine.compiled.structures import ProductStructure

BLOCK = 16
STEP = 32  # inputs and outputs are multiples of it; missing outputs are zeros
FULL_ROWS = 32  # rows are read in full blocks of so many where there are more


class PackedLinear:
    """``x W^T + b`` in bfloat16, summed in float32 and rounded once; a row's result does not depend on other rows.

    The weight is kept as (B, I / 2, 16, 2): the pair of inputs of each of 16 outputs side by side. I is a multiple of
    32. ``arena`` is where it is kept.
    """

    def __init__(self, library: CDLL, arena: Arena, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        self._library, self._outputs = library, len(weight_OI)
        packed_BI = packed(weight_OI)
        self._packed_BI = arena.zeros(*packed_BI.shape, dtype=torch.bfloat16).copy_(packed_BI)
        self._bias_O = None if bias_O is None else _filled(bias_O.float())
        self.structure = ProductStructure(
            self._packed_BI.data_ptr(),
            None if self._bias_O is None else self._bias_O.data_ptr(),
            BLOCK * len(self._packed_BI),
            weight_OI.shape[1],
        )

    @property
    def weight_OI(self) -> Tensor:  # noqa: N802 (a tensor with its shape)
        """The weight; a copy."""
        return self._packed_BI.transpose(1, 2).reshape(-1, self.structure.inputs)[: self._outputs]

    @property
    def bias_O(self) -> Tensor | None:  # noqa: N802
        """The bias, in float32."""
        return None if self._bias_O is None else self._bias_O[: self._outputs]

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O)."""
        rows = len(x_TI)
        x_TI = x_TI if rows <= FULL_ROWS else functional.pad(x_TI, (0, 0, 0, -rows % FULL_ROWS))
        x_TI = x_TI.contiguous()
        y_TO = torch.empty(rows, self._outputs, dtype=torch.bfloat16)
        self._library.servewise_product(
            byref(self.structure), x_TI.data_ptr(), rows, y_TO.data_ptr(), self._outputs, torch.get_num_threads()
        )
        return y_TO


def packed(weight_OI: Tensor) -> Tensor:
    """(B, I / 2, 16, 2), outputs filled up to a multiple of 32 with zeros."""
    filled = _filled(weight_OI.to(torch.bfloat16))
    return filled.view(-1, BLOCK, filled.shape[1] // 2, 2).transpose(1, 2).contiguous()


def _filled(values: Tensor) -> Tensor:
    missing = -len(values) % STEP
    return torch.cat((values, values.new_zeros(missing, *values.shape[1:]))) if missing else values.contiguous()
