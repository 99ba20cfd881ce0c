"""What every policy is: settings that make a batcher."""

from __future__ import annotations

from typing import Protocol

from servewise.batching.batch import Batcher
from servewise.batching.blockpool import BlockPool


class Policy(Protocol):
    """Immutable settings, by which each server gets a batcher of its own."""

    @property
    def name(self) -> str:
        """How results name it."""
        ...

    @property
    def describe(self) -> str:
        """The policy in words, for conditions."""
        ...

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        ...

    def batcher(self, pool: BlockPool, window_tokens: int | None = None) -> Batcher:
        """The policy at work on ``pool``."""
        ...
