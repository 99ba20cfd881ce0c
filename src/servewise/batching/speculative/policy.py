"""A policy whose decoding sequences speculate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from servewise.batching.batch import Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.speculative.acceptance import Acceptance, Draws
from servewise.batching.speculative.draft_length import DraftLength
from servewise.batching.speculative.group import SpeculativeGroup
from servewise.batching.speculative.lookup import Lookup
from servewise.batching.speculative.tally import Tally


class Groupable(Protocol):
    """A policy that takes its decode group's maker, as continuous batching does."""

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

    def batcher(self, pool: BlockPool, window_tokens: int | None = None, group: GroupMaker = ...) -> Batcher:
        """The policy at work on ``pool``."""
        ...


class LengthMaker(Protocol):
    """What makes a run's draft length: a measured one remembers, so each run has its own."""

    def __call__(self) -> DraftLength:
        """A fresh one."""
        ...


@dataclass(frozen=True, slots=True)
class Speculative:
    """``policy`` whose sequences draft by ``length`` and keep by ``acceptance`` as drawn from ``seed``.

    ``looks_ahead``: the drafter has a KV cache, so blocks are reserved for the next drafts too. ``words`` say how it
    speculates. ``tally``, where given, counts what is drafted and kept; it is for one run (``counted``).
    """

    policy: Groupable
    acceptance: Acceptance
    length: LengthMaker
    seed: int = 0
    looks_ahead: bool = True
    words: str = "speculating"
    tally: Tally | None = None

    @property
    def name(self) -> str:
        """The policy's own."""
        return self.policy.name

    @property
    def describe(self) -> str:
        """The policy in words, and how it speculates."""
        return f"{self.policy.describe}, {self.words}"

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        return self.policy.slots

    @property
    def prefix_cache(self) -> bool:
        """Whether the policy shares prefixes."""
        return bool(getattr(self.policy, "prefix_cache", False))

    def counted(self) -> tuple[Speculative, Tally]:
        """The same for one run whose speculation is counted."""
        tally = Tally()
        return replace(self, tally=tally), tally

    def batcher(self, pool: BlockPool, window_tokens: int | None = None) -> Batcher:
        """The policy at work on ``pool``."""
        batcher = self.policy.batcher(pool, window_tokens, self._group)
        return batcher if self.acceptance.hit_rate == 1 else Lookup(batcher)

    def _group(self, block_tokens: int, *, grows: bool, window_tokens: int | None = None) -> DecodeGroup:
        return SpeculativeGroup(
            block_tokens,
            grows=grows,
            window_tokens=window_tokens,
            draws=Draws(self.acceptance, self.seed),
            length=self.length(),
            looks_ahead=self.looks_ahead,
            tally=self.tally,
        )
