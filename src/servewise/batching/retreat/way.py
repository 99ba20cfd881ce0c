"""What a batcher asks of the way back."""

from __future__ import annotations

from typing import Protocol

from servewise.batching.sequence import Sequence


class WayBack(Protocol):
    """What becomes of the KV of a sequence that must give its blocks back; ``moves_kv``: it may be kept elsewhere."""

    moves_kv: bool

    def leave(self, sequence: Sequence, *, whole: bool) -> int:
        """``sequence`` has given its blocks back; ``whole``: it decoded, its KV was complete.

        Sets what it must compute, or has stored; returns how many KV tokens move out.
        """
        ...

    def done(self, sequence: Sequence) -> None:
        """Its KV is back in the pool, or it will not come back."""
        ...


def compute_again(sequence: Sequence) -> None:
    """Prompt and all that was generated are to be computed again."""
    sequence.target_tokens = sequence.prompt_tokens + sequence.generated
    sequence.computed_tokens = 0
