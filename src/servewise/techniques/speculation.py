"""Speculative decoding: tokens per verification, the best draft length, and what is left of the gain at large batch.

A draft proposes K tokens one after another; the target verifies all of them in one pass and keeps the longest
accepted prefix plus one token of its own. Symbols: a = acceptance rate, K = draft length, c = time of one draft step
over time of one target step. Sources: Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative
Decoding", ICML 2023 (arXiv:2211.17192); Chen et al., "Accelerating Large Language Model Decoding with Speculative
Sampling", 2023 (arXiv:2302.01318). Both leave the target's distribution unchanged; so do these formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

from servewise.errors import InputError

MAX_K = 1_000


class SpeculationRow(NamedTuple):
    """One draft length: ``k`` drafted tokens, tokens a verification yields, speed-up over plain decoding."""

    k: int
    tokens_per_verification: float
    speedup: float


def tokens_per_verification(acceptance: float, k: int) -> float:
    """Tokens that one verification yields on average [tokens].

    (1 - a^(K+1)) / (1 - a), with a the ``acceptance`` rate and K the draft length; summed as 1 + a + ... + a^K, which
    holds at a = 1 too. Takes acceptances as independent and alike at each position: real ones fall with the position
    (``tokens_by_position``) and differ between requests. Source: Leviathan et al. 2023, eq. (1).

    >>> round(tokens_per_verification(0.8, 4), 2)
    3.36
    """
    a, k = _acceptance(acceptance), _length(k)
    tokens = 1.0
    for _ in range(k):
        tokens = tokens * a + 1
    return tokens


def tokens_by_position(acceptances: Sequence[float]) -> float:
    """Tokens that one verification yields when position i is accepted with a probability of its own [tokens].

    1 + sum over i of a_1 a_2 ... a_i, where a_i is the probability that draft token i is accepted given that all before
    it were. K is the sequence's length. Source: Leviathan et al. 2023, section 3.1, without the i.i.d. assumption.

    >>> tokens_by_position([0.5, 0.5])
    1.75
    """
    _length(len(acceptances))
    return 1 + math.fsum(accumulate(map(_acceptance, acceptances), mul))


def tokens_from_survival(rates: Sequence[float]) -> float:
    """The same from what engines log as per-position acceptance: the share of drafts that survive up to position i.

    1 + sum of the rates (vLLM's spec_decode counters, accepted at position i over drafts). Rates must not rise.

    >>> tokens_from_survival([0.75, 0.5, 0.25])
    2.5
    """
    _length(len(rates))
    checked = [_acceptance(rate) for rate in rates]
    if any(later > earlier for earlier, later in pairwise(checked)):
        raise InputError("survival by position cannot rise", hint="are these conditional rates? use tokens_by_position")
    return 1 + math.fsum(checked)


def acceptance_from_tokens(tokens: float, k: int) -> float:
    """The acceptance rate a at which K = ``k`` drafted tokens yield ``tokens`` a verification: eq. (1) solved for a.

    Published "mean acceptance length" figures are this ``tokens``. Raises InputError outside 1 to K + 1.

    >>> round(acceptance_from_tokens(3.3616, 4), 3)
    0.8
    """
    if not 1 <= tokens <= _length(k) + 1:
        raise InputError(f"{k} drafted tokens yield from 1 to {k + 1} tokens, not {tokens!r}", where="tokens")
    return _bisect(lambda a: tokens_per_verification(a, k) >= tokens) or 0.0


def speedup(acceptance: float, k: int, draft_cost: float) -> float:
    """Speed-up of decoding over one token a target step [ratio].

    ((1 - a^(K+1)) / (1 - a)) / (K c + 1), with c the ``draft_cost``. K = 0 is plain decoding: 1. Leaves out that
    verifying K + 1 tokens costs more than a step once the batch is compute-bound (``batched_speedup``), sampling, and
    the draft's own prefill: an upper bound on a server. Source: Leviathan et al. 2023, theorem 3.8.

    >>> round(speedup(0.8, 5, 0.128), 2)
    2.25
    """
    return tokens_per_verification(acceptance, k) / (k * _cost(draft_cost) + 1)


def speculation_rows(acceptance: float, draft_cost: float, max_k: int = 16) -> tuple[SpeculationRow, ...]:
    """Every draft length from 0 (plain decoding) to ``max_k`` with its tokens and speed-up (``speedup``)."""
    rows = range(_length(max_k) + 1)
    return tuple(
        SpeculationRow(k, tokens_per_verification(acceptance, k), speedup(acceptance, k, draft_cost)) for k in rows
    )


def best_row(rows: Sequence[SpeculationRow]) -> SpeculationRow:
    """The row of the largest speed-up, the shortest draft among equals (it wastes least).

    >>> best_row(speculation_rows(0.8, 0.128)).k
    5
    >>> best_row(speculation_rows(0.1, 0.5)).k  # speculation does not pay
    0
    """
    return max(rows, key=lambda row: (row.speedup, -row.k))


def best_k(acceptance: float, draft_cost: float, max_k: int = 64) -> int:
    """The draft length from 0 to ``max_k`` of the largest speed-up; 0 where speculation does not pay.

    There is one that pays exactly when a > c. Source: Leviathan et al. 2023, corollary 3.9.
    """
    return best_row(speculation_rows(acceptance, draft_cost, max_k)).k


def acceptance_needed(wanted: float, draft_cost: float, max_k: int = 64) -> float | None:
    """The least acceptance rate whose best draft length reaches a ``wanted`` speed-up; None where none does.

    By bisection on a, since the best speed-up rises with a; at most (K + 1) / (K c + 1) can be had.

    >>> round(speedup(acceptance_needed(2.0, 0.128), 4, 0.128), 6)
    2.0
    """
    if not math.isfinite(wanted) or wanted <= 0:
        raise InputError(f"a speed-up is a positive number, not {wanted!r}", where="speedup")
    return _bisect(lambda a: best_row(speculation_rows(a, draft_cost, max_k)).speedup >= wanted)


def arithmetic_factor(acceptance: float, k: int, draft_flops_share: float) -> float:
    """Arithmetic operations a token costs, over plain decoding [ratio].

    (1 - a) (K ĉ + K + 1) / (1 - a^(K+1)), with ĉ the ``draft_flops_share``: operations of the draft over those of
    the target, per token. Above 1, so a compute-bound server loses by speculation. Source: Leviathan et al. 2023,
    theorem 3.11.
    """
    return (k * _cost(draft_flops_share) + k + 1) / tokens_per_verification(acceptance, k)


def batched_speedup(tokens: float, k: int, *, step_s: float, draft_step_s: float, verify_s: float) -> float:
    """Speed-up of a whole batch from step times that the caller knows for its batch size [ratio].

    tokens * step_s / (K draft_step_s + verify_s). ``tokens`` a verification yields a sequence, ``step_s`` is a plain
    target step of the batch [s], ``draft_step_s`` a draft step of the batch [s], ``verify_s`` the target's pass over
    batch x (K + 1) tokens [s]. At small batch verify_s is near step_s and this is ``speedup``; where the pass is
    compute-bound verify_s nears (K + 1) step_s and the gain turns into a loss. Leaves out that sequences that finish
    within a verification waste the rest of it. Source: Leviathan et al. 2023, section 3.3, with verify_s for the
    target's step.

    >>> batched_speedup(3.0, 4, step_s=0.010, draft_step_s=0.0, verify_s=0.040)
    0.75
    """
    _length(k)
    for name, value in (("step_s", step_s), ("verify_s", verify_s)):
        if not 0 < value < math.inf:
            raise InputError(f"must be a positive time, not {value!r}", where=name)
    return tokens * step_s / (k * _cost(draft_step_s, "draft_step_s") + verify_s)


def batched_rows(
    acceptance: float, *, draft_step_s: float, verify_s: Callable[[int], float], max_k: int = 16
) -> tuple[SpeculationRow, ...]:
    """Every draft length from 0 to ``max_k`` for one batch (``batched_speedup``).

    ``verify_s(n)`` is the target's pass over n new tokens of each sequence [s], ``verify_s(1)`` the plain step, so that
    row 0 is plain decoding. ``draft_step_s`` is one draft step of the batch [s].
    """
    step_s = verify_s(1)

    def row(k: int) -> SpeculationRow:
        tokens = tokens_per_verification(acceptance, k)
        gain = batched_speedup(tokens, k, step_s=step_s, draft_step_s=draft_step_s, verify_s=verify_s(k + 1))
        return SpeculationRow(k, tokens, gain)

    return tuple(row(k) for k in range(_length(max_k) + 1))


def _bisect(holds: Callable[[float], bool]) -> float | None:
    """The least x in [0, 1] from which ``holds`` holds, to 1e-12; None where it holds nowhere."""
    if not holds(1.0):
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _acceptance(value: float) -> float:
    if not 0 <= value <= 1:
        raise InputError(f"an acceptance rate lies between 0 and 1, not {value!r}", where="acceptance")
    return value


def _cost(value: float, where: str = "draft cost") -> float:
    if not 0 <= value < math.inf:
        raise InputError(f"must be zero or more, not {value!r}", where=where, hint="draft step over target step")
    return value


def _length(value: int) -> int:
    if not 0 <= value <= MAX_K:
        raise InputError(f"a draft holds 0 to {MAX_K:,} tokens, not {value!r}", where="k")
    return value
