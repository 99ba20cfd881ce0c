"""Blocks for the whole prompt at admission; the output grows."""

from __future__ import annotations

from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence


class WholePrompt:
    """A sequence is admitted when its prompt fits.

    ``watermark_blocks`` must stay free beside it, lest it be the next to be preempted (vLLM v0's ``watermark``, 0.01 of
    the pool: core/block_manager.py, 0.6.6). A server without any other work does not hold them back: there v0 refuses
    the request for good.
    """

    grows = True
    by_chunk = False
    eased_by_eviction = False

    def __init__(self, pool: BlockPool, watermark_blocks: int = 0) -> None:
        self._pool = pool
        self._watermark = watermark_blocks

    def holds(self, sequence: Sequence) -> bool:
        """Prompt and output fit into the pool."""
        return sequence.prompt_tokens + sequence.output_tokens <= self._pool.capacity_tokens

    def admit(self, sequence: Sequence, most_new: int, spare: int) -> bool:  # noqa: ARG002 - the rules' seam
        """Take blocks for all tokens that the sequence has so far."""
        pool = self._pool
        if self._watermark and pool.available != pool.total:
            spare += self._watermark
        return pool.admit(sequence, sequence.stored_tokens or sequence.target_tokens, spare)
