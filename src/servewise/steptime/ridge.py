"""The ridge: the batch from which a decode step is limited by arithmetic instead of memory."""

from __future__ import annotations

from servewise.steptime.estimator import Estimator
from servewise.steptime.shape import decode_shape

LARGEST_BATCH = 2**20
_TIE = 1.0 + 1e-9  # equal but for rounding counts as reached


def ridge_batch(estimator: Estimator, context_tokens: int) -> int | None:
    """The smallest batch whose decode step computes for as long as it reads; None: memory-bound at every batch.

    With KV growing as fast as FLOPs, no batch up to 2^20 may reach it.
    """
    if not _computes(estimator, LARGEST_BATCH, context_tokens):
        return None
    low, high = 0, 1
    while not _computes(estimator, high, context_tokens):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _computes(estimator, middle, context_tokens) else (middle, high)
    return high


def ridge_batch_without_kv(estimator: Estimator) -> int | None:
    """The ridge if only the weights had to be read: about peak / bandwidth x bytes a parameter / 2."""
    return ridge_batch(estimator, 0)


def _computes(estimator: Estimator, batch: int, context_tokens: int) -> bool:
    step = estimator.step(decode_shape(batch, context_tokens, estimator.window_tokens))
    return step.compute_s * _TIE >= step.memory_s
