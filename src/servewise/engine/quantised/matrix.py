"""A weight matrix on a grid. Legend: O outputs, I inputs, G groups, N values of a group."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from servewise.engine.quantised.bit_packing import pack
from servewise.engine.quantised.grid import SCALES, Grid, Steps, decode, encode, in_groups, steps_of
from servewise.errors import InputError


@dataclass(frozen=True, slots=True)
class QuantisedMatrix:
    """``codes_OI`` as int16 with their ``steps``, (O, G, 1) each: what stands for the matrix, not yet packed."""

    grid: Grid
    codes_OI: Tensor
    steps: Steps

    def dense(self) -> Tensor:
        """(O, I): the matrix that the codes stand for, in the dtype of the steps."""
        grouped = in_groups(self.codes_OI, self.grid.group).to(self.steps.scale.dtype)
        return decode(grouped, self.steps, self.grid).flatten(1)[:, : self.codes_OI.shape[1]]

    def packed(self) -> tuple[Tensor, ...]:
        """What is stored: codes of ``bits`` bits, scales and, where asymmetric, offsets of 16 bits."""
        kept = SCALES[self.grid.scales]
        codes = pack((self.codes_OI - self.grid.smallest).flatten(), self.grid.bits)
        scale, offset = self.steps.scale.to(kept), self.steps.offset.to(kept)
        return (codes, scale) if self.grid.symmetric else (codes, scale, offset)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the packed form: ``techniques.quantisation.matrix_bytes``."""
        return sum(each.nbytes for each in self.packed())


def round_to_nearest(weight_OI: Tensor, grid: Grid) -> QuantisedMatrix:
    """Each weight at its nearest code. Raises InputError for weights that are no finite numbers."""
    check_finite(weight_OI)
    grouped = in_groups(weight_OI, grid.group)
    steps = steps_of(grouped, grid)
    codes_OI = encode(grouped, steps, grid).flatten(1)[:, : weight_OI.shape[1]]
    return QuantisedMatrix(grid, codes_OI.to(torch.int16), steps)


def check_finite(weight_OI: Tensor) -> None:
    """Raises InputError for weights that are no finite numbers."""
    if not torch.isfinite(weight_OI).all():
        raise InputError("a weight is not a finite number", hint="the checkpoint is damaged")
