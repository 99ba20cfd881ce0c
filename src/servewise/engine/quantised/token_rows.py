"""What a cache keeps with steps of its own for each token and head: values, and keys by token.

Legend: P slots of the pool (blocks x tokens a block), T tokens, K KV heads, D head size, G groups of D, W packed bytes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from servewise.engine.quantised.bit_packing import pack, packed_bytes, unpack
from servewise.engine.quantised.grid import SCALES, Grid, Steps, decode, encode, in_groups, steps_of


class TokenRows:
    """One layer's packed codes and steps, by slot. What is written is final: it depends on nothing but its token."""

    def __init__(
        self, grid: Grid, slots: int, heads: int, size: int, *, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._grid, self._size, self._dtype = grid, size, dtype
        groups = -(-size // min(grid.group or size, size))
        self._codes_PKW = torch.zeros(slots, heads, packed_bytes(size, grid.bits), dtype=torch.uint8, device=device)
        steps = 1 if grid.symmetric else 2
        self._steps_PKGS = torch.zeros(slots, heads, groups, steps, dtype=SCALES[grid.scales], device=device)

    @property
    def bytes(self) -> int:
        """Bytes of all slots."""
        return self._codes_PKW.nbytes + self._steps_PKGS.nbytes

    def write(self, slots_T: Tensor, rows_TKD: Tensor) -> None:
        """Round and keep the rows of these slots."""
        grouped = in_groups(rows_TKD, self._grid.group)
        steps = steps_of(grouped, self._grid)
        codes_TKD = (encode(grouped, steps, self._grid) - self._grid.smallest).flatten(-2)[..., : self._size]
        self._codes_PKW[slots_T] = pack(codes_TKD, self._grid.bits)
        kept = (steps.scale,) if self._grid.symmetric else (steps.scale, steps.offset)
        self._steps_PKGS[slots_T] = torch.cat(kept, -1).to(self._steps_PKGS.dtype)

    def read(self, slots_T: Tensor) -> Tensor:
        """(T, K, D): the rows of these slots, as they are kept."""
        codes_TKD = unpack(self._codes_PKW[slots_T], self._grid.bits, self._size).to(self._dtype) + self._grid.smallest
        kept = self._steps_PKGS[slots_T].to(self._dtype)
        steps = Steps(kept[..., :1], torch.zeros_like(kept[..., :1]) if self._grid.symmetric else kept[..., 1:])
        return decode(in_groups(codes_TKD, self._grid.group), steps, self._grid).flatten(-2)[..., : self._size]

    def clear(self, slots_T: Tensor) -> None:
        """Zero these slots."""
        self._codes_PKW[slots_T] = 0
        self._steps_PKGS[slots_T] = 0

    def copy(self, source_T: Tensor, target_T: Tensor) -> None:
        """Copy slots."""
        self._codes_PKW[target_T] = self._codes_PKW[source_T]
        self._steps_PKGS[target_T] = self._steps_PKGS[source_T]
