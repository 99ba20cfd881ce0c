"""A fake of the Model seam whose logits depend on every token that the cache gives back.

Legend: T new tokens, R wanted rows, V vocabulary.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from servewise.engine.config import DecoderConfig, RopeConfig
from servewise.engine.step import KvCache, StepInput

VOCABULARY = 7


class TokenCache:
    """Keeps token ids where a real cache keeps keys; unwritten slots read as a token that no prompt has."""

    def __init__(self, blocks: int, block_tokens: int) -> None:
        self._blocks, self._block_tokens = blocks, block_tokens
        self._tokens = torch.full((blocks * block_tokens,), -1)

    @property
    def block_tokens(self) -> int:
        return self._block_tokens

    @property
    def blocks(self) -> int:
        return self._blocks

    def write(self, layer: int, slots_T: Tensor, keys: Tensor, values: Tensor) -> None:
        self._tokens[slots_T] = keys

    def read(self, layer: int, block_table: tuple[int, ...], tokens: int) -> tuple[Tensor, Tensor]:
        size = self._block_tokens
        found = self._tokens[[block_table[at // size] * size + at % size for at in range(tokens)]]
        return found, found


class HistoryModel:
    """Logits from the last two tokens, a little from all before them, and ``noise`` that makes it another model.

    ``broken``: a token after which the logits are not numbers.
    """

    def __init__(self, noise: float = 0.0, end_tokens: tuple[int, ...] = (), broken: int | None = None) -> None:
        self._noise, self._broken = noise, broken
        self._config = DecoderConfig(
            name="fake",
            family="llama",
            hidden=1,
            layers=1,
            heads=1,
            kv_heads=1,
            head_dim=1,
            intermediate=1,
            vocabulary=VOCABULARY,
            max_context_tokens=400,
            norm_epsilon=1e-5,
            rope=RopeConfig(theta=1e4, dimensions=1),
            tied=True,
            end_tokens=end_tokens,
        )
        self.steps = 0

    @property
    def config(self) -> DecoderConfig:
        return self._config

    def new_cache(self, blocks: int, block_tokens: int = 16) -> TokenCache:
        return TokenCache(blocks, block_tokens)

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        self.steps += 1
        cache.write(0, step.slots_T, step.tokens_T, step.tokens_T)
        wanted, rows = set(step.rows_R.tolist()), []
        for place, table in enumerate(step.block_tables):
            start, end = step.query_starts[place], step.query_starts[place + 1]
            context = step.context_tokens[place]
            history = cache.read(0, table, context)[0].tolist()
            assert step.positions_T[start:end].tolist() == list(range(context - (end - start), context))
            rows += [self.logits(history[: context - (end - 1 - row)]) for row in range(start, end) if row in wanted]
        return torch.stack(rows) if rows else torch.empty(0, VOCABULARY, dtype=torch.float64)

    def logits(self, history: list[int]) -> Tensor:
        """Of the token after ``history``."""
        if history[-1] == self._broken:
            return torch.full((VOCABULARY,), torch.nan, dtype=torch.float64)
        near, far = _normal(tuple(history[-2:])), _normal(tuple(history))
        other = _normal((99, *history))
        return torch.from_numpy(2.0 * near + 0.3 * far + self._noise * other)


@lru_cache(100_000)
def _normal(tokens: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(crc32(str(tokens).encode())).normal(size=VOCABULARY)
