"""Second moments of what enters each product, from a calibration text. Legend: T tokens, I inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from servewise.engine.decoder.linear import Linear


class Moments:
    """E[x x^T] of the inputs of each product, by the product's name."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._tokens: dict[str, int] = {}

    def of(self, name: str) -> Tensor:
        """(I, I), in float32 or float64."""
        return self._sums[name] / self._tokens[name]

    def __contains__(self, name: str) -> bool:
        return name in self._sums

    def add(self, name: str, x_TI: Tensor) -> None:
        """Add the tokens of one step."""
        x_TI = x_TI if x_TI.dtype == torch.float64 else x_TI.float()
        total = self._sums.setdefault(name, x_TI.new_zeros((x_TI.shape[1],) * 2))
        total.addmm_(x_TI.T, x_TI)
        self._tokens[name] = self._tokens.get(name, 0) + len(x_TI)

    def listening(self, name: str, product: Linear) -> Callable[[Tensor], Tensor]:
        """The same product, whose inputs are added here."""

        def product_heard(x_TI: Tensor) -> Tensor:
            self.add(name, x_TI)
            return product(x_TI)

        return product_heard
