"""Rotary positions. Legend: T tokens, H heads, D head size, F rotated pairs (D / 2 where all of a head turns)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from servewise.engine.config import RopeConfig


def frequencies(rope: RopeConfig, dtype: torch.dtype = torch.float32) -> Tensor:
    """Radians a position of each pair, with Llama 3's scaling where ``factor`` > 1.

    ``theta ** (-2 i / dimensions)`` (Su et al. 2021, eq. 15). Llama 3.1 divides those with a wavelength above
    ``original / low`` by ``factor``, keeps those below ``original / high``, and blends between (transformers'
    ``rope_type: llama3``).
    """
    steps = torch.arange(0, rope.dimensions, 2, dtype=torch.int64).to(dtype) / rope.dimensions
    plain = 1.0 / (rope.theta**steps)
    return plain if rope.factor == 1.0 else _scaled(plain, rope)


def _scaled(plain: Tensor, rope: RopeConfig) -> Tensor:
    low = rope.original_context_tokens / rope.low_frequency_factor
    high = rope.original_context_tokens / rope.high_frequency_factor
    wavelength = 2 * math.pi / plain
    slowed = torch.where(wavelength > low, plain / rope.factor, plain)
    span = rope.high_frequency_factor - rope.low_frequency_factor
    kept = (rope.original_context_tokens / wavelength - rope.low_frequency_factor) / span
    blended = (1 - kept) * slowed / rope.factor + kept * slowed
    between = (wavelength <= low) & (wavelength >= high)
    return torch.where(between, blended, slowed)


class RopeTable:
    """Cosines and sines of every position so far, grown as positions come.

    Angles are float32, as the models were trained and transformers computes them (float64 in a float64 model), then
    rounded to the model's dtype. The sines carry the rotation's sign, so that turning is
    ``x cos + roll(x, D / 2) sin``.
    """

    def __init__(self, rope: RopeConfig, dtype: torch.dtype, device: torch.device) -> None:
        self._exact = torch.float64 if dtype == torch.float64 else torch.float32
        self._frequencies_F = frequencies(rope, self._exact).to(device)
        self._dtype = dtype
        self._cos_TD = self._sin_TD = torch.empty(0, rope.dimensions, dtype=dtype, device=device)

    def at(self, positions_T: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines, (T, 1, rotated) each, of positions that are all below ``most``."""
        if most > len(self._cos_TD):
            self._grow(max(most, 2 * len(self._cos_TD), 256))
        return self._cos_TD[positions_T].unsqueeze(1), self._sin_TD[positions_T].unsqueeze(1)

    def _grow(self, positions: int) -> None:
        index_T = torch.arange(positions, device=self._frequencies_F.device, dtype=self._exact)
        angles_TF = torch.outer(index_T, self._frequencies_F)
        cos_TF, sin_TF = angles_TF.cos().to(self._dtype), angles_TF.sin().to(self._dtype)
        self._cos_TD = torch.cat((cos_TF, cos_TF), 1)
        self._sin_TD = torch.cat((-sin_TF, sin_TF), 1)


def rotate(x_THD: Tensor, cos_T1R: Tensor, sin_T1R: Tensor) -> Tensor:
    """``x_THD`` with its first R values of each head turned to their positions, the halves paired (GPT-NeoX style)."""
    rotated = cos_T1R.shape[-1]
    turning = x_THD if rotated == x_THD.shape[-1] else x_THD[..., :rotated]
    turned = torch.addcmul(turning * cos_T1R, turning.roll(rotated // 2, -1), sin_T1R)
    return turned if turning is x_THD else torch.cat((turned, x_THD[..., rotated:]), -1)
