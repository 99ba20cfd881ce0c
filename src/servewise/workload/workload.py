"""A workload: a recipe that yields the same requests for the same seed, streamed in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from servewise.workload.request import Request


class Workload(Protocol):
    """An open-loop workload (arrivals do not wait for answers)."""

    @property
    def title(self) -> str:
        """One line for conditions: what it is, with rate and lengths."""
        ...

    @property
    def rate_per_s(self) -> float:
        """Mean arrival rate [requests/s]."""
        ...

    @property
    def hash_block_tokens(self) -> int | None:
        """Tokens per block of ``Request.block_hashes``; None where there are none."""
        ...

    def requests(self, seed: int) -> Iterator[Request]:
        """The requests in order of arrival; serials count from 0."""
        ...

    def at_rate(self, rate_per_s: float) -> Workload:
        """The same workload with arrival times scaled to that mean rate."""
        ...
