"""Orca's allocation as the vLLM paper rebuilt it: memory for the whole answer, in buddies (Kwon et al. 2023, 6.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from servewise.batching.admission.reserved import Reserved
from servewise.batching.batch import Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.filling.prefill_first import PrefillFirst
from servewise.batching.sequence import Sequence

Reserve = Callable[[Sequence], int]


def power_of_two(tokens: int) -> int:
    """The least power of two that holds ``tokens``: what the buddy allocator hands out.

    >>> power_of_two(500), power_of_two(512)
    (512, 512)
    """
    return 1 << (tokens - 1).bit_length()


def most(sequence: Sequence) -> int:  # noqa: ARG001 - as the others
    """Orca (Max): the longest that the model takes."""
    return 2048


def pow2(sequence: Sequence) -> int:
    """Orca (Pow2): the output over-reserved by at most two."""
    return min(2048, power_of_two(sequence.prompt_tokens + power_of_two(sequence.output_tokens)))


def oracle(sequence: Sequence) -> int:
    """Orca (Oracle): the true length, in a buddy."""
    return power_of_two(sequence.prompt_tokens + sequence.output_tokens)


class Buddies(Reserved):
    """Takes a power of two of tokens for each sequence; the pool's blocks are single tokens."""

    def __init__(self, pool: BlockPool, reserve: Reserve) -> None:
        super().__init__(pool)
        self._pool, self._reserve = pool, reserve

    def admit(self, sequence: Sequence, most_new: int, spare: int) -> bool:  # noqa: ARG002 - the rules' seam
        """Take the buddy."""
        return self._pool.admit(sequence, self._reserve(sequence), spare)


@dataclass(frozen=True, slots=True)
class Orca:
    """Iteration-level scheduling of whole prompts, memory reserved by ``reserve``."""

    reserve: Reserve
    slots: int = 256
    name = "orca"
    describe = "Orca, memory reserved in buddies"

    def batcher(self, pool: BlockPool, window_tokens: int | None = None, group: object = DecodeGroup) -> Batcher:
        """The policy at work on ``pool``."""
        return PrefillFirst(
            pool,
            Buddies(pool, self.reserve),
            max_sequences=self.slots,
            max_batched_tokens=8192,
            window_tokens=window_tokens,
            group=group,  # type: ignore[arg-type]
        )
