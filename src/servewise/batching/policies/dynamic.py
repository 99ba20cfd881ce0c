"""Dynamic batching: as static, but a batch also starts once its first request has waited for a window."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.batching.batch import Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies.batchwise import BatchwiseBatcher
from servewise.batching.positive import positive


@dataclass(frozen=True, slots=True)
class Dynamic:
    """``batch`` sequences at once, or fewer once the oldest has waited ``window_s`` seconds."""

    batch: int = 8
    window_s: float = 0.05

    name = "dynamic"

    def __post_init__(self) -> None:
        """Refuse a batch below 1 and a negative window."""
        positive("batch", self.batch)
        positive("window", self.window_s, zero=True)

    @property
    def describe(self) -> str:
        """The policy in words, for conditions."""
        return f"dynamic, {self.batch} slots, window {self.window_s:g} s"

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        return self.batch

    def batcher(self, pool: BlockPool, window_tokens: int | None = None) -> Batcher:
        """The policy at work on ``pool``."""
        return BatchwiseBatcher(pool, batch=self.batch, window_s=self.window_s, window_tokens=window_tokens)
