"""How far a changed model is from the reference, position by position.

Legend: T positions, S sequences, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

RESAMPLES = 2000
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95% interval."""

    value: float
    low: float
    high: float

    def to_json(self, name: str) -> dict[str, object]:
        """``{name, ci95_name}``."""
        return {name: self.value, f"ci95_{name}": [self.low, self.high]}


@dataclass(frozen=True, slots=True)
class Quality:
    """By sequence, the means over its positions: KL from the reference [nats], agreement, -log p of the text [nats]."""

    kl_S: Floats
    agreement_S: Floats
    surprise_S: Floats

    def kl(self, seed: int) -> Estimate:
        """Mean KL(reference || model) a position [nats]."""
        return bootstrapped(self.kl_S, seed)

    def agreement(self, seed: int) -> Estimate:
        """Share of positions whose most likely token is the reference's."""
        return bootstrapped(self.agreement_S, seed)

    def perplexity(self, seed: int) -> Estimate:
        """exp of the mean surprise of the text."""
        return _exp(bootstrapped(self.surprise_S, seed))

    def perplexity_ratio(self, reference: Quality, seed: int) -> Estimate:
        """Perplexity over the reference's, sequence by sequence (paired)."""
        return _exp(bootstrapped(self.surprise_S - reference.surprise_S, seed))


def bootstrapped(values_S: Floats, seed: int) -> Estimate:
    """Mean and percentile interval over resampled sequences (Efron 1979).

    Sequences, not positions, are drawn: positions of one text are not independent. With few sequences the interval is
    somewhat too narrow (12 sequences: about 92% coverage for a normal quantity).
    """
    rng = np.random.default_rng(seed)
    means = values_S[rng.integers(0, len(values_S), (RESAMPLES, len(values_S)))].mean(1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(float(values_S.mean()), float(low), float(high))


def _exp(estimate: Estimate) -> Estimate:
    return Estimate(*(float(np.exp(each)) for each in (estimate.value, estimate.low, estimate.high)))


def rows_compared(reference_TV: Tensor, logits_TV: Tensor, targets_T: Tensor) -> Tensor:
    """(3, T): KL from the reference's log-probabilities, whether the best token is the same, and -log p of the text."""
    logs_TV = torch.log_softmax(logits_TV, -1)
    kl_T = (reference_TV.exp() * (reference_TV - logs_TV)).sum(-1)
    same_T = (reference_TV.argmax(-1) == logs_TV.argmax(-1)).to(kl_T.dtype)
    surprise_T = -logs_TV.gather(1, targets_T[:, None]).squeeze(1)
    return torch.stack((kl_T, same_T, surprise_T))
