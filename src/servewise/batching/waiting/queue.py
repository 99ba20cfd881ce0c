"""What a batcher asks of the sequences that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from servewise.batching.sequence import Sequence


class WaitingQueue(Protocol):
    """Sequences that wait, in the order in which they may be admitted.

    ``newest_last``: one that comes later is never admitted before one that waits, so that an arrival changes nothing
    while anyone waits. ``rejoins_last``: one that was running goes behind all that have come.
    """

    newest_last: bool
    rejoins_last: bool

    def append(self, sequence: Sequence) -> None:
        """Take in a sequence that has just come."""
        ...

    def give_back(self, sequence: Sequence) -> None:
        """Take in a sequence that was running."""
        ...

    def arrange(self) -> None:
        """Admissions are about to be decided: bring the order up to date, where it depends on the cache."""
        ...

    def head(self) -> Sequence:
        """Who is next; there is one."""
        ...

    def take(self) -> Sequence:
        """Take out who is next; there is one."""
        ...

    def remove(self, sequence: Sequence) -> None:
        """Take out ``sequence``, wherever it is."""
        ...

    def __len__(self) -> int:
        """How many wait."""
        ...

    def __iter__(self) -> Iterator[Sequence]:
        """Those that wait, in no promised order."""
        ...
