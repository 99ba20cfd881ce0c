"""A request as the scheduler sees it: when it arrives, how long it is, which blocks it shares."""

from __future__ import annotations

from typing import NamedTuple


class Request(NamedTuple):
    """One request. ``arrival_s`` counts from the run's start.

    ``block_hashes`` name the prompt's leading blocks of ``Workload.hash_block_tokens`` tokens, chained (equal hash
    means equal prefix up to and with that block); empty where nothing is known to be shared. ``answer_hashed``: they
    go on through the answer, block by whole block, since a later prompt begins with it.
    """

    serial: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    block_hashes: tuple[int, ...] = ()
    priority: int = 0
    answer_hashed: bool = False

    def prompt_hashes(self, block_tokens: int) -> tuple[int, ...]:
        """The hashes of its prompt alone; where they go on through the answer, those of the prompt's whole blocks."""
        return self.block_hashes[: self.prompt_tokens // block_tokens] if self.answer_hashed else self.block_hashes
