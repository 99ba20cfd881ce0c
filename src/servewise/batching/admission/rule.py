"""What a batcher asks before it lets a sequence run."""

from __future__ import annotations

from typing import Protocol

from servewise.batching.sequence import Sequence


class AdmissionRule(Protocol):
    """``grows``: running sequences take blocks as they go, and may run out of them. ``by_chunk``: so do prompts.

    ``eased_by_eviction``: one that waits may get in once its cached prefix is evicted: it then takes the blocks of
    a chunk from the start. Else, while nobody ends, one that cannot get in now cannot get in later.
    """

    grows: bool
    by_chunk: bool
    eased_by_eviction: bool

    def holds(self, sequence: Sequence) -> bool:
        """Whether ``sequence`` could be admitted, and come to its end, with the server to itself."""
        ...

    def admit(self, sequence: Sequence, most_new: int, spare: int) -> bool:
        """Give ``sequence`` its first blocks; False: it must wait on.

        The next step computes ``most_new`` tokens of it at most; ``spare`` blocks must stay for those that run.
        """
        ...
