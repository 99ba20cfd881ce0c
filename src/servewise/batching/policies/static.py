"""Static batching: wait for a full batch, run it until its longest sequence ends, release all together."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from servewise.batching.batch import Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies.batchwise import BatchwiseBatcher
from servewise.batching.positive import positive


@dataclass(frozen=True, slots=True)
class Static:
    """``batch`` sequences at once."""

    batch: int = 8

    name = "static"

    def __post_init__(self) -> None:
        """Refuse a batch below 1."""
        positive("batch", self.batch)

    @property
    def describe(self) -> str:
        """The policy in words, for conditions."""
        return f"static, {self.batch} slots"

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        return self.batch

    def batcher(self, pool: BlockPool, window_tokens: int | None = None) -> Batcher:
        """The policy at work on ``pool``."""
        return BatchwiseBatcher(pool, batch=self.batch, window_s=inf, window_tokens=window_tokens)
