"""Products with quantised weights: exact emulations, and those that PyTorch has a kernel for.

Legend: T tokens, O outputs, I inputs, G groups of inputs, N blocks of 64 outputs.

Kernels (PyTorch 2.13, CPU; bf16 activations): ``_weight_int8pack_mm`` for 8 bits, symmetric, a scale a channel;
``_weight_int4pack_mm_for_cpu`` for 4 bits in groups; ``_int_mm`` where the activations have 8 bits too. The first two
take time in proportion to the tokens; beyond some tokens a dense copy, made a part at a time so that it stays in the
cache, is faster (``benchmarks.speed.quantised_products``).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from servewise.engine.decoder.linear import DenseLinear, Linear
from servewise.engine.quantised.grid import round_to_grid
from servewise.engine.quantised.matrix import QuantisedMatrix
from servewise.engine.quantised.scheme import ACTIVATIONS

MOST_INT8_KERNEL_TOKENS = 32
MOST_INT4_KERNEL_TOKENS = 160
PART_VALUES = 2**19  # 1 MiB in bf16
INT4_GROUPS = (32, 64, 128, 256)
INT4_ROWS = 64
INT4_CENTRE = 8


def emulated(matrix: QuantisedMatrix, dtype: torch.dtype, bias_O: Tensor | None) -> DenseLinear:
    """The product in ``dtype`` with the values that the codes stand for; saves no memory."""
    return DenseLinear(matrix.dense().to(dtype), bias_O)


class RoundedInputs:
    """A product whose inputs are rounded to 8 bits a token first: an exact emulation."""

    def __init__(self, product: Linear) -> None:
        self._product = product

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O)."""
        return self._product(round_to_grid(x_TI, ACTIVATIONS))


class Int8Linear:
    """8-bit weights, a scale a channel, in one byte each; bf16 activations."""

    def __init__(self, matrix: QuantisedMatrix, bias_O: Tensor | None) -> None:
        self._codes_OI = matrix.codes_OI.to(torch.int8)
        self._scale_O = matrix.steps.scale.flatten().to(torch.bfloat16)
        self._bias_O = bias_O

    @property
    def stored_bytes(self) -> int:
        """Bytes kept."""
        return self._codes_OI.nbytes + self._scale_O.nbytes

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O)."""
        if len(x_TI) <= MOST_INT8_KERNEL_TOKENS and not x_TI.is_cuda:
            y_TO: Tensor = torch.ops.aten._weight_int8pack_mm(x_TI.contiguous(), self._codes_OI, self._scale_O)
        else:
            y_TO = self._by_parts(x_TI) * self._scale_O
        return _biased(y_TO, self._bias_O)

    def _by_parts(self, x_TI: Tensor) -> Tensor:
        """The product with the codes themselves, exact in bf16, a dense copy of some outputs at a time."""
        rows = max(1, PART_VALUES // x_TI.shape[1])
        return torch.cat(
            [functional.linear(x_TI, part.to(x_TI.dtype)) for part in torch.split(self._codes_OI, rows)], 1
        )


class Int4Linear:
    """4-bit weights in groups, two a byte in the order of PyTorch's CPU kernel; bf16 activations."""

    def __init__(self, matrix: QuantisedMatrix, bias_O: Tensor | None) -> None:
        codes_OI = (matrix.codes_OI + (0 if matrix.grid.smallest == 0 else INT4_CENTRE)).to(torch.int32)
        self._group, self._bias_O = matrix.grid.group or codes_OI.shape[1], bias_O
        self._codes: Tensor = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes_OI, 1)
        steps = torch.cat((matrix.steps.scale, matrix.steps.offset), 2)  # (O, G, 2)
        self._steps_GO2 = steps.transpose(0, 1).to(torch.bfloat16).contiguous()
        unpacked = _unpacked(self._codes.view(-1, codes_OI.shape[1], INT4_ROWS // 2))
        self._order_known = bool((unpacked == _in_blocks(codes_OI)).all())

    @property
    def stored_bytes(self) -> int:
        """Bytes kept."""
        return int(self._codes.nbytes + self._steps_GO2.nbytes)

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O)."""
        if len(x_TI) <= MOST_INT4_KERNEL_TOKENS or not self._order_known:
            y_TO: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
                x_TI.contiguous(), self._codes, self._group, self._steps_GO2
            )
        else:
            y_TO = self._by_parts(x_TI)
        return _biased(y_TO, self._bias_O)

    def _by_parts(self, x_TI: Tensor) -> Tensor:
        """The product, a dense copy of some blocks of outputs at a time."""
        inputs = x_TI.shape[1]
        steps_2NGR = self._steps_GO2.view(-1, len(self._codes) // INT4_ROWS, INT4_ROWS, 2).permute(3, 1, 0, 2)
        count = max(1, PART_VALUES // (inputs * INT4_ROWS))
        codes = torch.split(self._codes.view(-1, inputs, INT4_ROWS // 2), count)
        steps = torch.split(steps_2NGR, count, 1)
        parts = [x_TI @ self._dense(*each, x_TI.dtype) for each in zip(codes, steps, strict=True)]
        return torch.cat(parts).transpose(0, 1).reshape(len(x_TI), -1)

    def _dense(self, codes: Tensor, steps_2NGR: Tensor, dtype: torch.dtype) -> Tensor:
        """(N, I, 64): the matrix of some blocks, transposed as the kernel's order has it."""
        signed = _unpacked(codes).to(torch.int8) - INT4_CENTRE
        scale, offset = steps_2NGR.unsqueeze(3)
        grouped = signed.to(dtype).view(len(codes), -1, self._group, INT4_ROWS)
        return torch.addcmul(offset, grouped, scale, out=grouped).view(signed.shape)


def _unpacked(codes: Tensor) -> Tensor:
    """(N, I, 64) codes in AVX512's order: byte (n, i, j) holds outputs 64n + j and 64n + 32 + j of input i."""
    return torch.cat((codes & 15, codes >> 4), 2)


def _biased(y_TO: Tensor, bias_O: Tensor | None) -> Tensor:
    return y_TO if bias_O is None else y_TO + bias_O


def _in_blocks(codes_OI: Tensor) -> Tensor:
    return codes_OI.view(-1, INT4_ROWS, codes_OI.shape[1]).transpose(1, 2)


class Int8Int8Linear:
    """8-bit weights, a scale a channel, and 8-bit activations, a scale a token: integer products, exact in int32."""

    def __init__(self, matrix: QuantisedMatrix, bias_O: Tensor | None) -> None:
        self._codes_OI = matrix.codes_OI.to(torch.int8)
        self._scale_O = matrix.steps.scale.flatten().to(torch.float32)
        self._bias_O = bias_O

    @property
    def stored_bytes(self) -> int:
        """Bytes kept."""
        return self._codes_OI.nbytes + self._scale_O.nbytes

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O)."""
        x_TI, dtype = x_TI.float(), x_TI.dtype
        scale_T1 = (x_TI.abs().amax(1, keepdim=True) / ACTIVATIONS.largest).clamp_min_(torch.finfo(torch.float32).tiny)
        codes_TI = (x_TI / scale_T1).round_().to(torch.int8)
        y_TO = torch._int_mm(codes_TI, self._codes_OI.t()) * scale_T1 * self._scale_O
        return _biased(y_TO.to(dtype), self._bias_O)


def packed(matrix: QuantisedMatrix, dtype: torch.dtype, bias_O: Tensor | None, *, activations: bool) -> Linear | None:
    """The product by a kernel, where the grid, the dtype and the shape have one; else None."""
    grid, device = matrix.grid, matrix.codes_OI.device.type
    by_channel = grid.bits == 8 and grid.symmetric and grid.group is None
    if by_channel and activations and device == "cpu" and dtype in (torch.float32, torch.bfloat16):
        return Int8Int8Linear(matrix, bias_O)
    if activations or dtype != torch.bfloat16 or grid.scales != "bf16":
        return None
    if by_channel:
        return Int8Linear(matrix, bias_O)
    outputs, inputs = matrix.codes_OI.shape
    fits = grid.group in INT4_GROUPS and inputs % grid.group == 0 and outputs % INT4_ROWS == 0
    return Int4Linear(matrix, bias_O) if grid.bits == 4 and fits and device == "cpu" else None
