"""A model whose logits depend on exactly what the cache holds, so that a wrong block address changes the reply."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from servewise.engine.config import DecoderConfig, RopeConfig
from servewise.engine.step import StepInput

torch.set_num_threads(1)
WEIGHTS = np.random.default_rng(7).integers(0, 1 << 63, 4096, np.uint64) | np.uint64(1)
MIX = np.uint64(0x9E37_79B9_7F4A_7C15)


def config(
    *, vocabulary: int = 40, context: int = 4096, end: tuple[int, ...] = (), window: int | None = None
) -> DecoderConfig:
    """The config of a model that is none."""
    return DecoderConfig(
        name="fake",
        family="llama",
        hidden=8,
        layers=1,
        heads=1,
        kv_heads=1,
        head_dim=8,
        intermediate=8,
        vocabulary=vocabulary,
        max_context_tokens=context,
        norm_epsilon=1e-5,
        rope=RopeConfig(theta=1e4, dimensions=8),
        tied=True,
        window_tokens=window,
        end_tokens=end,
    )


def logits_after(tokens: Sequence[int], vocabulary: int) -> np.ndarray:
    """Logits that follow from every token and its place: a linear hash, then splitmix64 for each of the vocabulary."""
    with np.errstate(over="ignore"):
        key = np.sum(WEIGHTS[: len(tokens)] * (np.asarray(tokens, np.uint64) + np.uint64(1)))
        bits = (key + np.arange(vocabulary, dtype=np.uint64) * MIX) * MIX
        bits ^= bits >> np.uint64(29)
        bits *= np.uint64(0xBF58_476D_1CE4_E5B9)
        bits ^= bits >> np.uint64(32)
    logits: np.ndarray = (bits >> np.uint64(40)).astype(np.float64) / 2**22  # 0 to 4
    return logits


def reply_alone(prompt: Sequence[int], tokens: int, vocabulary: int = 40, end: tuple[int, ...] = ()) -> list[int]:
    """The greedy reply, without engine and cache."""
    so_far = list(prompt)
    for _ in range(tokens):
        so_far.append(int(logits_after(so_far, vocabulary).argmax()))
        if so_far[-1] in end:
            break
    return so_far[len(prompt) :]


class FakeCache:
    """Keeps, for each slot, the token and the position that were written there."""

    def __init__(self, blocks: int, block_tokens: int) -> None:
        self.blocks, self.block_tokens = blocks, block_tokens
        self.tokens = np.full(blocks * block_tokens, -1, np.int64)
        self.positions = np.full(blocks * block_tokens, -1, np.int64)

    def write(self, layer: int, slots_T: Tensor, keys: Tensor, values: Tensor) -> None:
        raise NotImplementedError

    def read(self, layer: int, block_table: tuple[int, ...], tokens: int) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class Clock:
    """A clock that stands still unless moved; counted from 0."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


class FakeModel:
    """Each step takes 1 s of ``clock``. A context that holds the token ``poison`` gives NaN.

    A sequence's cached tokens must stand at the positions 0, 1, 2 ...: anything else is a wrong address.
    """

    def __init__(
        self, facts: DecoderConfig | None = None, clock: Clock | None = None, poison: int | None = None
    ) -> None:
        self._config = facts or config()
        self.clock = clock or Clock()
        self.poison = poison
        self.contexts: list[tuple[int, ...]] = []

    @property
    def config(self) -> DecoderConfig:
        return self._config

    def new_cache(self, blocks: int, block_tokens: int = 16) -> FakeCache:
        return FakeCache(blocks, block_tokens)

    def step(self, step: StepInput, cache: object) -> Tensor:
        assert isinstance(cache, FakeCache)
        self.clock.wait(1.0)
        self.contexts.append(step.context_tokens)
        slots = step.slots_T.numpy()
        assert len(set(slots.tolist())) == len(slots), "two tokens share a slot"
        cache.tokens[slots] = step.tokens_T.numpy()
        cache.positions[slots] = step.positions_T.numpy()
        rows = [self._row(step, cache, row) for row in step.rows_R.tolist()]
        return torch.tensor(np.array(rows).reshape(-1, self._config.vocabulary))

    def _row(self, step: StepInput, cache: FakeCache, row: int) -> np.ndarray:
        sequence = int(np.searchsorted(step.query_starts, row, side="right")) - 1
        assert step.query_starts[sequence + 1] - 1 == row, "logits are wanted after a sequence's last token only"
        count, size = step.context_tokens[sequence], cache.block_tokens
        at = np.arange(count)
        slots = np.asarray(step.block_tables[sequence])[at // size] * size + at % size
        assert np.array_equal(cache.positions[slots], at), "the block table leads to another place"
        held = cache.tokens[slots]
        if self.poison is not None and self.poison in held:
            return np.full(self._config.vocabulary, np.nan)
        return logits_after(held.tolist(), self._config.vocabulary)
