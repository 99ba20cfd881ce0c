"""Speculative decoding against its papers, the study and logged runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.techniques.speculation import (
    acceptance_from_tokens,
    acceptance_needed,
    arithmetic_factor,
    batched_rows,
    batched_speedup,
    best_k,
    best_row,
    speculation_rows,
    speedup,
    tokens_by_position,
    tokens_from_survival,
    tokens_per_verification,
)

acceptances = st.floats(0, 1)
costs = st.floats(0, 2)
lengths = st.integers(0, 40)


@pytest.mark.parametrize(
    ("acceptance", "k", "operations", "speed"),
    [
        (0.6, 2, 1.53, 1.96), (0.7, 3, 1.58, 2.53), (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69), (0.9, 2, 1.11, 2.71), (0.9, 10, 1.60, 6.86),
    ],
)  # fmt: skip
def test_leviathan_table_1(acceptance: float, k: int, operations: float, speed: float) -> None:
    """Leviathan et al. 2023, table 1: operations and speed for a free draft (c = ĉ = 0)."""
    assert speedup(acceptance, k, 0) == pytest.approx(speed, abs=0.005)
    assert arithmetic_factor(acceptance, k, 0) == pytest.approx(operations, abs=0.005)


@pytest.mark.parametrize(
    ("draft_cost", "acceptance", "k", "gain"),
    [
        (0.05, 0.5, 3, 1.63), (0.05, 0.7, 6, 2.35), (0.05, 0.8, 8, 3.09), (0.05, 0.9, 13, 4.67),
        (0.128, 0.5, 2, 1.39), (0.128, 0.7, 4, 1.83), (0.128, 0.8, 5, 2.25), (0.128, 0.9, 9, 3.03),
    ],
)  # fmt: skip
def test_the_studys_best_draft_lengths(draft_cost: float, acceptance: float, k: int, gain: float) -> None:
    """The study's table of best K and speed-up for two draft costs."""
    best = best_row(speculation_rows(acceptance, draft_cost, 64))
    assert (best.k, round(best.speedup, 2)) == (k, gain)
    assert best_k(acceptance, draft_cost) == k


def test_the_studys_tokens_per_verification() -> None:
    """The study's tokens per verification at K = 4 for acceptances 0.5, 0.7, 0.8, 0.9."""
    assert [round(tokens_per_verification(a, 4), 2) for a in (0.5, 0.7, 0.8, 0.9)] == [1.94, 2.77, 3.36, 4.10]


@pytest.mark.parametrize(
    ("survival", "logged"),
    [
        ([0.89, 0.77, 0.64, 0.54, 0.45, 0.37, 0.26, 0.21], (5.13, 5.13)),
        ([0.90, 0.80, 0.69, 0.56], (3.87, 3.98)),
        ([0.79, 0.59, 0.43, 0.31], (3.07, 3.07)),
        ([0.87, 0.75, 0.60], (3.2, 3.2)),
    ],
)
def test_engines_log_survival_by_position(survival: list[float], logged: tuple[float, float]) -> None:
    """vLLM's per-position rates sum to its mean acceptance length, to the 2% that two decimals leave.

    Logged runs: https://github.com/noonghunna/club-3090/blob/4a29ab57/BENCHMARKS.md (2026).
    """
    low, high = logged
    assert low * 0.98 <= tokens_from_survival(survival) <= high * 1.02


def test_simulated_verifications_yield_the_mean() -> None:
    """Coin tosses at a = 0.7, K = 4, counted until the first rejection, average to eq. (1) within 4 standard errors."""
    rng = np.random.default_rng(7)
    accepted = rng.random((200_000, 4)) < 0.7
    tokens = 1 + np.cumprod(accepted, axis=1).sum(axis=1)
    error = tokens.std() / math.sqrt(len(tokens))
    assert abs(tokens.mean() - tokens_per_verification(0.7, 4)) < 4 * error


@given(acceptances, lengths)
def test_tokens_are_the_geometric_sum(acceptance: float, k: int) -> None:
    """The sum equals (1 - a^(K+1)) / (1 - a), K + 1 in the limit a = 1, and lies between 1 and K + 1."""
    closed = k + 1 if acceptance == 1 else (1 - acceptance ** (k + 1)) / (1 - acceptance)
    if acceptance < 0.999:  # nearer to 1 the closed form cancels
        assert tokens_per_verification(acceptance, k) == pytest.approx(closed, rel=1e-9)
    assert 1 <= tokens_per_verification(acceptance, k) <= (k + 1) * (1 + 1e-12)


@given(acceptances, acceptances, lengths)
def test_more_acceptance_yields_more(one: float, other: float, k: int) -> None:
    """Tokens never fall when the acceptance rate rises."""
    low, high = sorted((one, other))
    assert tokens_per_verification(low, k) <= tokens_per_verification(high, k) * (1 + 1e-12)


@given(acceptances, lengths)
def test_free_drafts_gain_their_tokens(acceptance: float, k: int) -> None:
    """At c = 0 the speed-up is the tokens per verification; at K = 0 it is 1."""
    assert speedup(acceptance, k, 0) == tokens_per_verification(acceptance, k)
    assert speedup(acceptance, 0, 0.5) == 1


@given(st.floats(0, 0.999), costs, st.integers(1, 40))
def test_best_length_beats_all_others(acceptance: float, draft_cost: float, max_k: int) -> None:
    """No draft length up to the limit is faster than the best, and none shorter is as fast."""
    best = best_k(acceptance, draft_cost, max_k)
    gain = speedup(acceptance, best, draft_cost)
    assert all(speedup(acceptance, k, draft_cost) <= gain for k in range(max_k + 1))
    assert all(speedup(acceptance, k, draft_cost) < gain for k in range(best))


@given(st.floats(0.001, 0.999), costs)
def test_speculation_pays_exactly_when_acceptance_exceeds_cost(acceptance: float, draft_cost: float) -> None:
    """Leviathan et al. 2023, corollary 3.9: some K gains if and only if a > c, and then at least (1 + a) / (1 + c)."""
    if acceptance > draft_cost * (1 + 1e-9):
        best = best_row(speculation_rows(acceptance, draft_cost, 64))
        assert best.k > 0
        assert best.speedup >= (1 + acceptance) / (1 + draft_cost) * (1 - 1e-12)
    elif acceptance < draft_cost * (1 - 1e-9):
        assert best_k(acceptance, draft_cost) == 0


@given(st.lists(acceptances, max_size=12))
def test_positions_multiply_up_to_survival(conditional: list[float]) -> None:
    """Conditional rates and their running products, the survival that engines log, give the same tokens."""
    survival = [math.prod(conditional[: i + 1]) for i in range(len(conditional))]
    assert tokens_by_position(conditional) == pytest.approx(tokens_from_survival(survival), rel=1e-12)


@given(acceptances, st.integers(1, 20))
def test_alike_positions_are_the_closed_form(acceptance: float, k: int) -> None:
    """With the same rate at each position both forms agree."""
    assert tokens_by_position([acceptance] * k) == pytest.approx(tokens_per_verification(acceptance, k), rel=1e-12)


@given(st.floats(0.01, 1), st.integers(1, 12))
def test_acceptance_comes_back_from_tokens(acceptance: float, k: int) -> None:
    """Solving eq. (1) for a returns the rate that gave the tokens."""
    assert acceptance_from_tokens(tokens_per_verification(acceptance, k), k) == pytest.approx(acceptance, abs=1e-6)


@given(st.floats(0.2, 6), st.floats(0, 1))
def test_acceptance_needed_is_just_enough(wanted: float, draft_cost: float) -> None:
    """The rate found reaches the wanted speed-up, a rate 1e-6 lower does not; None means that a = 1 does not either."""
    needed = acceptance_needed(wanted, draft_cost, 16)

    def reached(a: float) -> bool:
        return best_row(speculation_rows(a, draft_cost, 16)).speedup >= wanted

    if needed is None:
        assert not reached(1.0)
    else:
        assert reached(needed)
        assert needed < 2e-6 or not reached(needed - 1e-6)


def test_the_gain_fades_with_the_batch() -> None:
    """Where a pass is max(bytes, tokens x FLOPs) the gain falls from the closed form to a loss as the batch grows."""

    def gain(batch: int) -> float:
        def verify_s(tokens: int) -> float:
            return max(0.020, 0.0001 * batch * tokens)  # ridge at 200 tokens a pass

        tokens = tokens_per_verification(0.8, 4)
        return batched_speedup(tokens, 4, step_s=verify_s(1), draft_step_s=verify_s(1) / 20, verify_s=verify_s(5))

    gains = [gain(batch) for batch in (1, 40, 80, 120, 200)]
    assert gains[0] == pytest.approx(speedup(0.8, 4, 0.05))
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] < 1


@given(acceptances, st.floats(0, 1))
def test_one_sequence_is_the_closed_form(acceptance: float, draft_cost: float) -> None:
    """With a pass that costs the same for any few tokens, the batch-aware rows are the closed form's."""
    rows = batched_rows(acceptance, draft_step_s=draft_cost * 0.02, verify_s=lambda _: 0.02, max_k=8)
    plain = speculation_rows(acceptance, draft_cost, 8)
    assert [row.k for row in rows] == list(range(9))
    assert [row.speedup for row in rows] == pytest.approx([row.speedup for row in plain], rel=1e-9)


@given(st.floats(0, 0.999), st.integers(0, 30), st.floats(0, 1))
def test_speculation_never_saves_arithmetic(acceptance: float, k: int, share: float) -> None:
    """Verified tokens are at most the passes' tokens, so a compute-bound server never gains."""
    assert arithmetic_factor(acceptance, k, share) >= 1 - 1e-12


@pytest.mark.parametrize("acceptance", [-0.1, 1.1, float("nan"), float("inf")])
def test_impossible_acceptance_is_refused(acceptance: float) -> None:
    """A rate outside 0 to 1 is wrong input."""
    with pytest.raises(InputError, match="acceptance"):
        tokens_per_verification(acceptance, 4)


@pytest.mark.parametrize("k", [-1, 10**9])
def test_impossible_length_is_refused(k: int) -> None:
    """A draft length below 0 or absurdly long is wrong input."""
    with pytest.raises(InputError, match="draft holds"):
        speculation_rows(0.5, 0.1, k)


@pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf")])
def test_impossible_cost_is_refused(cost: float) -> None:
    """A draft cost below zero or without a value is wrong input."""
    with pytest.raises(InputError, match="draft cost"):
        speedup(0.5, 2, cost)


def test_other_wrong_input_is_refused() -> None:
    """Rising survival, tokens beyond K + 1, a negative speed-up and a step without time are refused."""
    with pytest.raises(InputError, match="cannot rise"):
        tokens_from_survival([0.5, 0.6])
    with pytest.raises(InputError, match="from 1 to 5"):
        acceptance_from_tokens(5.5, 4)
    with pytest.raises(InputError, match="positive"):
        acceptance_needed(-1, 0.1)
    with pytest.raises(InputError, match="positive time"):
        batched_speedup(2.0, 4, step_s=0.0, draft_step_s=0.0, verify_s=0.1)
