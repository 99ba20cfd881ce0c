"""Blocks for prompt and output at admission, so that nothing is ever preempted."""

from __future__ import annotations

from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence


class Reserved:
    """TensorRT-LLM's GUARANTEED_NO_EVICT (batch_manager/capacityScheduler.cpp), Orca's allocation (Yu et al. 2022).

    ``most_tokens`` bounds a sequence's prompt and output, as a slot of llama.cpp does; None: the pool alone does.
    """

    grows = False
    by_chunk = False
    eased_by_eviction = False

    def __init__(self, pool: BlockPool, most_tokens: int | None = None) -> None:
        self._pool = pool
        self._most_tokens = pool.capacity_tokens if most_tokens is None else min(most_tokens, pool.capacity_tokens)

    def holds(self, sequence: Sequence) -> bool:
        """Prompt and output fit."""
        return sequence.prompt_tokens + sequence.output_tokens <= self._most_tokens

    def admit(self, sequence: Sequence, most_new: int, spare: int) -> bool:  # noqa: ARG002 - the rules' seam
        """Take blocks for prompt and output."""
        return self._pool.admit(sequence, sequence.prompt_tokens + sequence.output_tokens, spare)
