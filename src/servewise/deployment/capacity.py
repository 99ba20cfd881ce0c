"""The answer to "does it fit": how many KV tokens are left, or how many bytes are short."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment


@dataclass(frozen=True, slots=True)
class MemoryTerm:
    """One part of an accelerator's memory: its name, its bytes on one accelerator, and how it was found."""

    name: str
    bytes: float
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCapacity:
    """What is left for the KV cache of one replica.

    ``kv_tokens`` are tokens the pool of one replica holds when all layers count in full; ``kv_bytes_per_token`` are
    the bytes that a token takes on one accelerator; ``kv_budget_bytes`` is the pool on one accelerator;
    ``blocks`` its blocks of ``block_tokens`` tokens. ``breakdown`` sums to the accelerator's memory.
    """

    kv_budget_bytes: float
    kv_bytes_per_token: float
    kv_tokens: int
    block_tokens: int
    blocks: int
    weight_bytes: float
    breakdown: tuple[MemoryTerm, ...]
    caveats: tuple[Caveat, ...] = ()

    fits = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DoesNotFit:
    """It does not fit: ``short_by_bytes`` more are needed on each accelerator to hold weights and one sequence."""

    short_by_bytes: float
    weight_bytes: float
    kv_bytes_per_token: float
    breakdown: tuple[MemoryTerm, ...]
    caveats: tuple[Caveat, ...] = ()

    fits = False


def kv_capacity(deployment: Deployment) -> KvCapacity | DoesNotFit:
    """What ``deployment`` leaves for the KV cache on each accelerator, as its engine would."""
    raise NotImplementedError


def max_sequences(deployment: Deployment, capacity: KvCapacity, context_tokens: int) -> int:
    """How many sequences of ``context_tokens`` tokens the pool holds at once (windows, states, blocks respected)."""
    raise NotImplementedError
