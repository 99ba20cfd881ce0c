"""A kind of replica: what runs on it, how fast, with how much memory."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.batching.batch import Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Policy
from servewise.batching.positive import positive
from servewise.simulate.replica import Beside
from servewise.steptime.estimator import Estimator


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaKind:
    """The arguments of ``simulate`` for one replica, and its ``weight``: how much work it takes beside the others.

    A router that heeds weights gives a replica of weight 2 twice the requests of one of weight 1.
    """

    policy: Policy
    estimator: Estimator
    blocks: int | None = None
    block_tokens: int = 16
    hash_block_tokens: int | None = None
    weight: float = 1.0
    beside: Beside | None = None

    def __post_init__(self) -> None:
        """Refuse a weight that is not above 0."""
        positive("a replica's weight", self.weight)

    def batcher(self) -> Batcher:
        """The policy at work on an empty pool."""
        cached = self.hash_block_tokens if self.caches else None
        return self.policy.batcher(BlockPool(self.blocks, self.block_tokens, cached), self.estimator.window_tokens)

    @property
    def caches(self) -> bool:
        """Whether its policy keeps prefixes."""
        return bool(getattr(self.policy, "prefix_cache", False))

    @property
    def kept_hashes(self) -> int | None:
        """How many hash blocks the pool can keep; None: without limit."""
        if self.blocks is None or self.hash_block_tokens is None:
            return None
        return self.blocks * self.block_tokens // self.hash_block_tokens
