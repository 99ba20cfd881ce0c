"""Greedy generation with and without a KV cache, counting the positions that the model really processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from servewise.study.transformer import Floats, KvCache, Transformer, forward


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One greedy run.

    ``logits`` [N, V] are those that each token was taken from; ``positions`` went through the layers; ``seconds``
    is its wall time. ``margin`` is the smallest gap between the best and the second-best logit: tokens of two runs
    compare only where it is far above their rounding, else a tie decides.
    """

    tokens: tuple[int, ...]
    logits: Floats
    positions: int
    seconds: float

    @property
    def margin(self) -> float:
        """Smallest gap between best and second-best logit."""
        best_two = np.partition(self.logits, -2, axis=-1)[:, -2:]
        return float(np.min(best_two[:, 1] - best_two[:, 0]))


def generate_without_cache(
    model: Transformer, prompt: Sequence[int], count: int, clock: Callable[[], float] = perf_counter
) -> Generation:
    """``count`` tokens, each from a pass over the whole sequence so far."""
    start, sequence, rows, positions = clock(), list(prompt), [], 0
    for _ in range(count):
        cache = KvCache.empty(model.config)
        rows.append(forward(model, np.array(sequence), cache)[-1])
        positions += cache.positions_processed
        sequence.append(best(rows[-1]))
    return _generation(sequence[len(prompt) :], rows, positions, clock() - start)


def generate_with_cache(
    model: Transformer, prompt: Sequence[int], count: int, clock: Callable[[], float] = perf_counter
) -> Generation:
    """``count`` tokens, each from a pass over the one new token.

    As in the study, the last token is fed back too, so that its keys and values are kept for what may follow: prompt
    + count positions, of which the last is not needed for these tokens.
    """
    start, tokens, rows = clock(), [], []
    cache = KvCache.empty(model.config)
    row = forward(model, np.array(prompt), cache)[-1]
    for _ in range(count):
        rows.append(row)
        tokens.append(best(row))
        row = forward(model, np.array(tokens[-1:]), cache)[-1]
    return _generation(tokens, rows, cache.positions_processed, clock() - start)


def best(logits_V: Floats) -> int:
    """The greedy token; of equal logits the lowest token."""
    return int(np.argmax(logits_V))


def _generation(tokens: list[int], rows: list[Floats], positions: int, seconds: float) -> Generation:
    return Generation(tokens=tuple(tokens), logits=np.array(rows), positions=positions, seconds=seconds)
