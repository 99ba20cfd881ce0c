"""Its KV moves to the host and comes back: vLLM v0's ``preemption_mode=swap`` (core/scheduler.py, 0.6.6)."""

from __future__ import annotations

from servewise.batching.retreat.way import compute_again
from servewise.batching.sequence import Sequence


class Swap:
    """``host_blocks`` blocks of ``block_tokens`` tokens on the host; who finds no room there computes again.

    So does who was still in its prompt.
    """

    moves_kv = True

    def __init__(self, host_blocks: int, block_tokens: int) -> None:
        self.free = host_blocks
        self._block_tokens = block_tokens
        self._held: dict[int, int] = {}  # serial -> blocks

    def leave(self, sequence: Sequence, *, whole: bool) -> int:
        """All of its KV moves out, if there is room."""
        tokens = sequence.computed_tokens
        blocks = -(-tokens // self._block_tokens)
        if not whole or blocks > self.free:
            compute_again(sequence)
            return 0
        self.free -= blocks
        self._held[sequence.serial] = blocks
        sequence.stored_tokens, sequence.computed_tokens = tokens, 0
        return tokens

    def done(self, sequence: Sequence) -> None:
        """Its room on the host is free."""
        self.free += self._held.pop(sequence.serial, 0)
