"""A model with its KV cache: sequences grow by chunks and are cut back.

Legend: T new tokens, N wanted rows of a chunk, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from servewise.batching.sequence import Sequence as Held
from servewise.engine.running.addresses import AddressedPool
from servewise.engine.step import Model, StepInput

PROMPT_CHUNK_TOKENS = 512  # of a prompt in one step: bounds the memory of activations


class Chunk(NamedTuple):
    """New ``tokens`` of the sequence ``serial``; logits are wanted after each of the last ``wanted`` of them."""

    serial: int
    tokens: Sequence[int]
    wanted: int


class CachedModel:
    """``model`` with a cache of ``capacity_tokens``; each sequence in it has blocks for all that it may grow to.

    What lies behind a sequence's ``computed`` tokens is stale and is written over before it can be read: rejected
    drafts need no clearing. ``device`` is the model's.
    """

    def __init__(
        self, model: Model, capacity_tokens: int, block_tokens: int = 16, device: torch.device | str = "cpu"
    ) -> None:
        blocks = -(-capacity_tokens // block_tokens)
        self.model = model
        self._device = device
        self._pool = AddressedPool(blocks, block_tokens)
        self._cache = model.new_cache(blocks, block_tokens)
        self._held: dict[int, Held] = {}

    def admit(self, serial: int, tokens: int) -> bool:
        """Reserve blocks for a sequence of up to ``tokens`` tokens; False: there are not enough now."""
        held = Held(serial, tokens, 0)
        if not self._pool.admit(held, tokens):
            return False
        self._held[serial] = held
        return True

    def release(self, serial: int) -> None:
        """A sequence has ended; its blocks are free."""
        self._pool.release(self._held.pop(serial))

    def clear(self, serial: int) -> None:
        """Zero what the sequence left in the cache: not-a-number outlives the masks, were its blocks another's."""
        clear = getattr(self._cache, "clear", None)  # a cache that reads exact lengths needs none
        if clear is not None:
            clear(self._pool.table(self._held[serial]))

    @property
    def free_blocks(self) -> int:
        """Blocks that no sequence holds."""
        return self._pool.free

    def computed(self, serial: int) -> int:
        """Tokens of the sequence that are in the cache."""
        return self._held[serial].computed_tokens

    def keep(self, serial: int, tokens: int) -> None:
        """Cut the sequence back to its first ``tokens`` tokens, if more are in the cache."""
        held = self._held[serial]
        held.computed_tokens = min(held.computed_tokens, tokens)

    def extend(self, chunks: Sequence[Chunk]) -> list[Tensor]:
        """Compute every chunk in one step, each behind what is there; (N, V) logits for each chunk."""
        step = self._step_input(chunks)
        logits_RV = self.model.step(step, self._cache)
        for chunk in chunks:
            self._held[chunk.serial].computed_tokens += len(chunk.tokens)
        ends = list(accumulate((chunk.wanted for chunk in chunks), initial=0))
        return [logits_RV[start:end] for start, end in pairwise(ends)]

    def prefill(self, serial: int, tokens: Sequence[int], wanted: int) -> Tensor:
        """Compute a prompt by chunks; the (N, V) logits after its last ``wanted`` tokens, 0 or 1."""
        ends = range(PROMPT_CHUNK_TOKENS, len(tokens), PROMPT_CHUNK_TOKENS)
        start = 0
        for end in ends:
            self.extend([Chunk(serial, tokens[start:end], 0)])
            start = end
        return self.extend([Chunk(serial, tokens[start:], wanted)])[0]

    def _step_input(self, chunks: Sequence[Chunk]) -> StepInput:
        size = self._pool.block_tokens
        starts = list(accumulate((len(chunk.tokens) for chunk in chunks), initial=0))
        tables = tuple(self._pool.table(self._held[chunk.serial]) for chunk in chunks)
        places = [range(self.computed(each.serial), self.computed(each.serial) + len(each.tokens)) for each in chunks]
        slots = [
            table[at // size] * size + at % size for table, where in zip(tables, places, strict=True) for at in where
        ]
        rows = [row for end, chunk in zip(starts[1:], chunks, strict=True) for row in range(end - chunk.wanted, end)]
        return StepInput(
            tokens_T=self._whole([token for chunk in chunks for token in chunk.tokens]),
            positions_T=self._whole([at for where in places for at in where]),
            slots_T=self._whole(slots),
            query_starts=tuple(starts),
            context_tokens=tuple(where.stop for where in places),
            block_tables=tables,
            rows_R=self._whole(rows),
        )

    def _whole(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self._device)
