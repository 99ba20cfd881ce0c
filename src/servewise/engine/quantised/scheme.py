"""What is quantised, and how."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.engine.quantised.gptq import Gptq
from servewise.engine.quantised.grid import Grid
from servewise.errors import InputError

ACTIVATIONS = Grid(bits=8, scales="fp32")
"""Activations at 8 bits: symmetric, one scale a token, found as it comes (dynamic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvScheme:
    """The KV cache's bits. ``keys`` share their steps by ``channel`` within a block of tokens (KIVI) or by ``token``.

    Values, and keys by token, have steps for each token and head, or for ``group`` channels of a head.
    """

    bits: int
    keys: str = "channel"
    group: int | None = None
    symmetric: bool = False

    def __post_init__(self) -> None:
        """Refuses keys by anything else."""
        if self.keys not in ("channel", "token"):
            raise InputError(f"keys by {self.keys!r}", where="keys", hint="channel or token")
        _ = self.along_channels

    @property
    def along_channels(self) -> Grid:
        """The grid of values, and of keys by token."""
        return Grid(bits=self.bits, group=self.group, symmetric=self.symmetric)

    @property
    def along_tokens(self) -> Grid:
        """The grid of keys by channel."""
        return Grid(bits=self.bits, symmetric=self.symmetric)

    def __str__(self) -> str:
        """E.g. ``int4 asymmetric KV, keys by channel``."""
        shape = "symmetric" if self.symmetric else "asymmetric"
        group = f", group {self.group}" if self.group else ""
        return f"int{self.bits} {shape} KV, keys by {self.keys}{group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """What a decoder computes with fewer bits.

    ``weights``: the grid of the layers' matrices (``tables``: of the embedding and output tables too); ``method``: None
    rounds to nearest. ``activations``: what enters a quantised product, at 8 bits a token. ``packed``: products whose
    bits have a kernel here keep only the packed weights; the others, and all without it, are exact emulations.
    """

    weights: Grid | None = None
    method: Gptq | None = None
    tables: bool = False
    activations: bool = False
    packed: bool = False
