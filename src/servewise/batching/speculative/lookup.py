"""A batcher whose sequences draft only where a lookup finds something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from servewise.batching.batch import Batch, Batcher
from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.sequence import Sequence
from servewise.batching.speculative.group import SpeculativeGroup


class Lookup:
    """``batcher``, whose steps tell how many rows have a draft (vLLM schedules no drafts for a row without a match).

    The token budget and the blocks are those of a draft for every row: both are reserved before the lookup.
    """

    def __init__(self, batcher: Batcher) -> None:
        self.batcher = batcher
        self.moves_kv = bool(getattr(batcher, "moves_kv", False))
        self.add, self.close, self.wake_s = batcher.add, batcher.close, batcher.wake_s
        self.commit, self.finish = batcher.commit, batcher.finish

    @property
    def group(self) -> DecodeGroup:
        """The decoding sequences."""
        return self.batcher.group

    @property
    def waiting_count(self) -> int:
        """Sequences that wait."""
        return self.batcher.waiting_count

    def unreleased(self) -> Iterator[Sequence]:
        """Every sequence that waits or runs."""
        return self.batcher.unreleased()

    def plan(self, now_s: float) -> Batch | None:
        """The next step; a row without a match decodes one token, and where none has one it is a plain step."""
        batch = self.batcher.plan(now_s)
        if batch is None or not batch.drafted:
            return batch
        group = cast("SpeculativeGroup", self.group)
        rows, undrafted = group.drafting(), group.windowed_undrafted()
        reads = batch._replace(
            context_tokens=batch.context_tokens - (batch.decodes - rows) * batch.drafted,
            windowed_tokens=batch.windowed_tokens - undrafted,
            windowed_growth=batch.windowed_growth - undrafted,
        )
        return reads._replace(drafting=rows) if rows else reads._replace(drafted=0)
