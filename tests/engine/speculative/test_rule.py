"""The accept/reject rule against closed forms and a chi-square test with power."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from servewise.engine.sampling.probabilities import draw
from servewise.engine.speculative.lane import Proposal
from servewise.engine.speculative.rule import residual, verified, verified_greedy

torch.set_num_threads(1)  # tensors of nine numbers
TRIALS = 30_000  # the study's
STUDY_DISTANCES = (0.15, 0.47)
DISTANCE_BAR = 0.007  # its figures are 0.006 and 0.005


def zipf() -> Tensor:
    """Nine tokens, chances as 1/rank."""
    weights = 1 / torch.arange(1, 10, dtype=torch.float64)
    return weights / weights.sum()


def at_distance(p_V: Tensor, distance: float) -> Tensor:
    """A draft at that total variation: the target mixed with its mirror image."""
    share = distance / float((p_V - p_V.flip(0)).abs().sum() / 2)
    return (1 - share) * p_V + share * p_V.flip(0)


def first_tokens(p_V: Tensor, q_V: Tensor, trials: int, seed: int) -> tuple[np.ndarray, int]:
    """The first token of many verifications of one drafted token each, and how many drafts were kept."""
    rng, drafts = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    drafted = draw(q_V.expand(trials, -1), drafts.random(trials).tolist())
    out = [verified(torch.stack([p_V, p_V]), Proposal((token,), q_V[None]), rng) for token in drafted]
    return np.array([tokens[0] for tokens in out]), sum(len(tokens) == 2 for tokens in out)


@pytest.mark.parametrize("distance", STUDY_DISTANCES)
def test_output_has_the_targets_distribution(distance: float) -> None:
    """From drafts 0.15 and 0.47 away, output is within 0.007 of the target, and a chi-square test finds no fault."""
    p_V = zipf()
    q_V = at_distance(p_V, distance)
    tokens, kept = first_tokens(p_V, q_V, TRIALS, seed=0)
    counts = np.bincount(tokens, minlength=9)

    assert abs(counts / TRIALS - p_V.numpy()).sum() / 2 < DISTANCE_BAR
    assert chisquare(counts, p_V.numpy() * TRIALS).pvalue > 0.001
    deviation = (distance * (1 - distance) / TRIALS) ** 0.5
    assert kept / TRIALS == pytest.approx(1 - distance, abs=4 * deviation)  # Leviathan et al., corollary 3.6


@pytest.mark.parametrize("distance", STUDY_DISTANCES)
def test_the_chi_square_test_finds_a_rule_without_residual(distance: float) -> None:
    """The same test at the same size refuses a rule that draws refused tokens from the target itself."""
    p_V = zipf()
    q_V = at_distance(p_V, distance)
    rng = np.random.default_rng(0)
    drafted = np.array(draw(q_V.expand(TRIALS, -1), rng.random(TRIALS).tolist()))
    kept = rng.random(TRIALS) * q_V.numpy()[drafted] < p_V.numpy()[drafted]
    wrong = np.where(kept, drafted, rng.choice(9, size=TRIALS, p=p_V.numpy()))

    assert chisquare(np.bincount(wrong, minlength=9), p_V.numpy() * TRIALS).pvalue < 0.001


def test_a_certain_draft_keeps_the_target_too() -> None:
    """A looked-up token (no distribution) is kept with p(x), and output still has the target's distribution."""
    p_V, rng = zipf(), np.random.default_rng(3)
    out = [verified(torch.stack([p_V, p_V]), Proposal((2,)), rng) for _ in range(TRIALS)]
    counts = np.bincount([tokens[0] for tokens in out], minlength=9)

    assert chisquare(counts, p_V.numpy() * TRIALS).pvalue > 0.001
    kept, share = sum(len(tokens) == 2 for tokens in out) / TRIALS, float(p_V[2])
    assert kept == pytest.approx(share, abs=4 * (share * (1 - share) / TRIALS) ** 0.5)


def test_the_bonus_token_has_the_last_rows_distribution() -> None:
    """Where all drafted tokens are kept, one more comes, distributed as the target's row after them."""
    p_V, rng = zipf(), np.random.default_rng(4)
    rows = torch.stack([p_V, p_V, p_V.flip(0)])
    q_2V = torch.stack([p_V, p_V])
    out = [verified(rows, Proposal((0, 1), q_2V), rng) for _ in range(TRIALS // 3)]

    assert {len(tokens) for tokens in out} == {3}  # p = q: nothing is refused
    counts = np.bincount([tokens[2] for tokens in out], minlength=9)
    assert chisquare(counts, p_V.flip(0).numpy() * len(out)).pvalue > 0.001


def test_each_position_is_judged_by_its_own_row() -> None:
    """A token that the target rules out at its place ends the draft there, whatever stands at other places."""
    sure = torch.eye(4, dtype=torch.float64)
    tokens = verified(sure[[0, 1, 2, 3]], Proposal((0, 1, 3)), np.random.default_rng(0))

    assert tokens == (0, 1, 2)


chances = st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5).filter(lambda each: sum(each) > 0.1)


@settings(deadline=None)
@given(chances, chances)
def test_kept_and_residual_mass_add_up_to_the_target(p: list[float], q: list[float]) -> None:
    """min(p, q) plus the refused mass times the residual is p: the proof's identity (Leviathan et al., A.1)."""
    p_V, q_V = (torch.tensor(each, dtype=torch.float64) / sum(each) for each in (p, q))
    kept_V = torch.minimum(p_V, q_V)
    left = residual(p_V, q_V, 0)

    assert left.sum().item() == pytest.approx(1)
    torch.testing.assert_close(kept_V + (1 - kept_V.sum()) * left, p_V, rtol=0, atol=1e-12)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_greedy_is_the_rule_at_certainty(best: list[int], data: st.DataObject) -> None:
    """With certain rows the random rule and the greedy one give the same tokens: the agreeing prefix and one."""
    drafted = data.draw(st.lists(st.integers(0, 3), min_size=len(best) - 1, max_size=len(best) - 1))
    rows = torch.eye(4, dtype=torch.float64)[best]

    assert verified(rows, Proposal(tuple(drafted)), np.random.default_rng(0)) == verified_greedy(best, drafted)
