"""One of the batchers of a pipeline, and the batch that it has in flight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from servewise.batching.batch import Batch, Batcher
from servewise.batching.filling.batcher import ContinuousBatcher
from servewise.batching.sequence import Sequence
from servewise.batching.speculative.lookup import Lookup


@dataclass(slots=True, eq=False)
class Lane:
    """One batcher: the batch that it has in flight, the sequences that it ``held``, the blocks put by for its step."""

    batcher: Batcher
    flying: Batch | None = None
    unfinished: Batch | None = None  # of what flies, that which only its return makes true
    held: int = 0
    put_by: int = 0

    @property
    def comes_and_goes(self) -> bool:
        """Whether sequences join at every step; batches that are released whole hold all they will need."""
        return isinstance(self._within, ContinuousBatcher)

    @property
    def continuous(self) -> ContinuousBatcher:
        """The batcher of a lane that ``comes_and_goes``."""
        return cast("ContinuousBatcher", self._within)

    @property
    def _within(self) -> Batcher:
        return self.batcher.batcher if isinstance(self.batcher, Lookup) else self.batcher

    def hand_over(self) -> list[Sequence]:
        """Those in their prompts leave, but for those whose last part is in flight."""
        last = {each.sequence.serial for each in self.unfinished.chunks} if self.unfinished else ()
        loose = [each for each in self.prefilling if each.serial not in last]
        for each in loose:
            self.continuous.hand_over(each)
        self.held -= len(loose)
        return loose

    @property
    def running(self) -> Mapping[int, Sequence]:
        """Who runs, by serial."""
        return self.continuous.running if self.comes_and_goes else {}

    @property
    def prefilling(self) -> list[Sequence]:
        """Who is in its prompt."""
        return self.continuous.prefilling if self.comes_and_goes else []
