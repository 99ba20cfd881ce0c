"""Speculative sampling's accept/reject rule, and the test that its output is the target's distribution.

A drafted token x ~ q is kept with probability min(1, p(x) / q(x)); else a token is drawn from the residual
max(0, p - q), normalised (Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2). What comes out is
distributed as p whatever q is; a token is kept with probability sum(min(p, q)) = 1 - TV(p, q).

Shapes: V vocabulary, N independent trials, K drafted tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.study.transformer import Floats, Ints


def total_variation(p_V: Floats, q_V: Floats) -> float:
    """Half the summed absolute difference of two distributions."""
    return float(np.abs(p_V - q_V).sum() / 2)


def residual(p_V: Floats, q_V: Floats) -> Floats:
    """What the target has beyond the draft, normalised; the target itself where the two are equal."""
    beyond: Floats = np.maximum(p_V - q_V, 0.0)
    return beyond / beyond.sum() if beyond.sum() > 0 else p_V


def sample(p_V: Floats, count: int, rng: np.random.Generator) -> Ints:
    """``count`` tokens from ``p_V``."""
    return rng.choice(len(p_V), size=count, p=p_V)


def accept(p_V: Floats, q_V: Floats, drafted_N: Ints, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which drafted tokens are kept."""
    kept: NDArray[np.bool_] = rng.random(len(drafted_N)) * q_V[drafted_N] < p_V[drafted_N]
    return kept


def accept_or_resample(p_V: Floats, q_V: Floats, drafted_N: Ints, rng: np.random.Generator) -> Ints:
    """The rule: the drafted tokens that are kept, residual ones in place of the others."""
    kept_N = accept(p_V, q_V, drafted_N, rng)
    return np.where(kept_N, drafted_N, sample(residual(p_V, q_V), len(drafted_N), rng))


def resample_from_target(p_V: Floats, q_V: Floats, drafted_N: Ints, rng: np.random.Generator) -> Ints:
    """A wrong rule, for the test of the test: rejected tokens are drawn from the target, not from the residual."""
    kept_N = accept(p_V, q_V, drafted_N, rng)
    return np.where(kept_N, drafted_N, sample(p_V, len(drafted_N), rng))


def verify(target_KV: Floats, draft_KV: Floats, drafted_K: Ints, rng: np.random.Generator) -> tuple[int, ...]:
    """Tokens that one verification yields: the kept prefix and one token of the target's own (1 to K + 1).

    Row i of ``target_KV`` and ``draft_KV`` is the distribution after i drafted tokens; ``target_KV`` has K + 1 rows,
    the last for the token that comes free where all are kept.
    """
    for place in range(len(drafted_K)):
        p_V, q_V = target_KV[place], draft_KV[place]
        if not accept(p_V, q_V, drafted_K[place : place + 1], rng)[0]:
            return (*drafted_K[:place].tolist(), int(sample(residual(p_V, q_V), 1, rng)[0]))
    return (*drafted_K.tolist(), int(sample(target_KV[len(drafted_K)], 1, rng)[0]))


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """Pearson's chi-square of counts against a distribution, and the chance of one as large if it is right."""

    statistic: float
    degrees: int
    p_value: float


def goodness_of_fit(tokens_N: Ints, p_V: Floats) -> GoodnessOfFit:
    """Pearson's test that ``tokens_N`` were drawn from ``p_V``; every expected count should be at least 5."""
    expected_V = p_V * len(tokens_N)
    observed_V = np.bincount(tokens_N, minlength=len(p_V))
    statistic = float(np.sum((observed_V - expected_V) ** 2 / expected_V))
    return GoodnessOfFit(statistic, len(p_V) - 1, chi_square_tail(statistic, len(p_V) - 1))


def chi_square_tail(statistic: float, degrees: int) -> float:
    """P(chi-square of ``degrees`` > ``statistic``), in closed form (Abramowitz and Stegun 26.4.4 and 26.4.5).

    Even degrees: exp(-x/2) x sum of (x/2)^i / i!; odd ones: the same with half-integer powers, plus erfc(sqrt(x/2)).

    >>> round(chi_square_tail(15.507, 8), 4), round(chi_square_tail(3.841, 1), 4)
    (0.05, 0.05)
    """
    half, odd = statistic / 2, degrees % 2
    start = math.erfc(math.sqrt(half)) if odd else 0.0
    powers = (place + odd / 2 for place in range(degrees // 2))
    return start + math.exp(-half) * math.fsum(half**power / math.gamma(power + 1) for power in powers)


def draft_at_distance(p_V: Floats, distance: float) -> Floats:
    """A draft at that total variation from the target: the target mixed with its own mirror image.

    >>> p = np.array([0.5, 0.3, 0.2])
    >>> round(total_variation(p, draft_at_distance(p, 0.15)), 12)
    0.15
    """
    mirror = p_V[::-1]
    share = distance / total_variation(p_V, mirror)
    return (1 - share) * p_V + share * mirror
