"""Its KV is dropped and computed again."""

from __future__ import annotations

from servewise.batching.retreat.way import compute_again
from servewise.batching.sequence import Sequence


class Recompute:
    """The way of vLLM v1, SGLang and TensorRT-LLM's MAX_UTILIZATION; what the prefix cache keeps is found again."""

    moves_kv = False

    def leave(self, sequence: Sequence, *, whole: bool) -> int:  # noqa: ARG002 - the ways' seam
        """Nothing moves."""
        compute_again(sequence)
        return 0

    def done(self, sequence: Sequence) -> None:
        """Nothing is kept for it."""
