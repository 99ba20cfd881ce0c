"""Integer grids: from values to codes and back. Legend: O outputs, I inputs, G groups of inputs, N values of a group.

A group of values shares one scale and, where the grid is asymmetric, one offset:

- symmetric: ``v = scale x code``, code from -(2^(b-1) - 1) to 2^(b-1) - 1, scale = max|v| / (2^(b-1) - 1);
- asymmetric: ``v = scale x (code - centre) + offset``, code from 0 to 2^b - 1, scale = (max - min) / (2^b - 1).

Scales and offsets are kept in 16 bits (``fp32``: 32, for activations, which nothing stores), and codes are chosen for
the kept ones. ``fp16`` offsets are the minimum (centre 0), as in ggml's Q4_1 and KIVI (Liu et al. 2024, section 3);
``bf16`` offsets are the value of code 2^(b-1), as PyTorch's int4 kernel wants them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from servewise.errors import InputError

BITS = (8, 6, 4, 3, 2)
GROUPS = (32, 64, 128)
SCALES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """``bits`` a code; ``group`` inputs share a scale (None: all of an output's, that is one scale a channel)."""

    bits: int
    group: int | None = None
    symmetric: bool = True
    scales: str = "fp16"

    def __post_init__(self) -> None:
        """Refuses what is no grid."""
        if not 2 <= self.bits <= 8:
            raise InputError(f"a grid of {self.bits} bits", where="bits", hint="from 2 to 8")
        if self.group is not None and self.group < 1:
            raise InputError(f"groups of {self.group} values", where="group")
        if self.scales not in SCALES:
            raise InputError(f"scales in {self.scales!r}", where="scales", hint=f"one of {', '.join(SCALES)}")

    @property
    def largest(self) -> int:
        """The largest code."""
        return (1 << self.bits - 1) - 1 if self.symmetric else (1 << self.bits) - 1

    @property
    def smallest(self) -> int:
        """The smallest code."""
        return -self.largest if self.symmetric else 0

    @property
    def centre(self) -> int:
        """The code whose value is the offset."""
        return 1 << self.bits - 1 if not self.symmetric and self.scales == "bf16" else 0

    @property
    def scale_bits(self) -> int:
        """Bits of a group's scale."""
        return SCALES[self.scales].itemsize * 8

    @property
    def zero_bits(self) -> int:
        """Bits of a group's offset."""
        return 0 if self.symmetric else self.scale_bits

    def __str__(self) -> str:
        """E.g. ``int4 asymmetric, group 32``."""
        shape = "channel" if self.group is None else f"group {self.group}"
        return f"int{self.bits} {'symmetric' if self.symmetric else 'asymmetric'}, {shape}"


@dataclass(frozen=True, slots=True)
class Steps:
    """Scale and offset (0 where symmetric) of each group, rounded as they are kept, in the dtype of the values."""

    scale: Tensor
    offset: Tensor


def steps_of(grouped: Tensor, grid: Grid) -> Steps:
    """The steps, (..., 1) each, of groups along the last dimension of ``grouped``, (..., N).

    A group of equal values gets scale 1 and is kept by its offset (asymmetric) or as zero.
    """
    low, high = torch.aminmax(grouped, dim=-1, keepdim=True)
    if grid.symmetric:
        scale = _kept(torch.maximum(low.abs(), high.abs()) / grid.largest, grid)
        return Steps(scale.where(scale > 0, 1), torch.zeros_like(low))
    scale = _kept((high - low) / grid.largest, grid)
    scale = scale.where(scale > 0, 1)
    return Steps(scale, _kept(low + grid.centre * scale, grid))


def _kept(values: Tensor, grid: Grid) -> Tensor:
    kept = SCALES[grid.scales]
    most = torch.finfo(kept).max
    return values.clamp(-most, most).to(kept).to(values.dtype)


def encode(values: Tensor, steps: Steps, grid: Grid) -> Tensor:
    """The nearest codes, as floats of the values' dtype (ties to even)."""
    return torch.round((values - steps.offset) / steps.scale + grid.centre).clamp_(grid.smallest, grid.largest)


def decode(codes: Tensor, steps: Steps, grid: Grid) -> Tensor:
    """The values that codes stand for."""
    return (codes - grid.centre) * steps.scale + steps.offset


def round_to_grid(values: Tensor, grid: Grid) -> Tensor:
    """``values``, (..., N), on the grid, groups along the last dimension."""
    grouped = in_groups(values, grid.group)
    steps = steps_of(grouped, grid)
    return decode(encode(grouped, steps, grid), steps, grid).flatten(-2)[..., : values.shape[-1]]


def in_groups(values: Tensor, group: int | None) -> Tensor:
    """``values``, (..., I), as (..., G, N); a short last group is filled up with its own last value."""
    width = values.shape[-1]
    size = min(group or width, width)
    short = -width % size
    if short:
        values = torch.cat((values, values[..., -1:].expand(*values.shape[:-1], short)), -1)
    return values.reshape(*values.shape[:-1], values.shape[-1] // size, size)
