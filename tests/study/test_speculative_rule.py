"""The accept/reject rule gives the target's distribution, and the test that says so can say no."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from servewise.study.row import StudyTable
from servewise.study.rule_check import rule_check_table, target
from servewise.study.speculative_rule import (
    accept,
    accept_or_resample,
    chi_square_tail,
    draft_at_distance,
    goodness_of_fit,
    resample_from_target,
    residual,
    sample,
    total_variation,
    verify,
)
from servewise.study.transformer import Floats


@pytest.fixture(scope="module")
def table() -> StudyTable:
    """The table, computed once."""
    return rule_check_table()


@pytest.mark.parametrize(("distance", "study"), [(0.15, 0.006), (0.47, 0.005)])
def test_output_is_as_near_to_the_target_as_the_studys(table: StudyTable, distance: float, study: float) -> None:
    """From a draft 0.15 or 0.47 away the output is sampling noise away from the target, as in the study."""
    (row,) = table.select("distance of the output", draft_distance=distance)
    assert row.ours < distance / 10
    assert study / 3 < row.ours < study * 3


@pytest.mark.parametrize("distance", [0.15, 0.47])
def test_chi_square_accepts_the_rule_and_rejects_a_wrong_one(table: StudyTable, distance: float) -> None:
    """The goodness-of-fit test passes the rule and rejects the one that forgets the residual."""
    assert all(row.agrees for row in table.rows if row.case["draft_distance"] == distance)


@given(st.floats(0, 200), st.integers(1, 40))
def test_chi_square_tail_is_scipys(statistic: float, degrees: int) -> None:
    """The closed form of the chi-square tail equals scipy's."""
    assert chi_square_tail(statistic, degrees) == pytest.approx(stats.chi2.sf(statistic, degrees), rel=1e-9, abs=1e-300)


distributions = st.lists(st.floats(0.01, 1), min_size=2, max_size=8).map(lambda each: np.array(each) / sum(each))


@given(distributions, st.data())
def test_kept_and_residual_mass_add_up_to_the_target(p: Floats, data: st.DataObject) -> None:
    """For any two distributions, min(p, q) plus the rejected mass spread as the residual is p: the rule's proof."""
    q = data.draw(st.lists(st.floats(0.0, 1), min_size=len(p), max_size=len(p)).filter(lambda each: sum(each) > 0.1))
    draft = np.array(q) / sum(q)
    rejected = 1 - np.minimum(p, draft).sum()
    np.testing.assert_allclose(np.minimum(p, draft) + rejected * residual(p, draft), p, atol=1e-12)
    assert rejected == pytest.approx(total_variation(p, draft), abs=1e-12)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(distributions, st.integers(0, 10**6), st.data())
def test_output_follows_any_target(p: Floats, seed: int, data: st.DataObject) -> None:
    """For random targets and drafts the output passes a chi-square test at 1 in 100,000."""
    rng = np.random.default_rng(seed)
    weights = data.draw(st.lists(st.floats(0.01, 1), min_size=len(p), max_size=len(p)))
    draft = np.array(weights) / sum(weights)
    output = accept_or_resample(p, draft, sample(draft, 20_000, rng), rng)
    assert goodness_of_fit(output, p).p_value > 1e-5


def test_false_alarms_come_at_the_stated_rate() -> None:
    """Over 400 seeds the p-values of the right rule are uniform (Kolmogorov-Smirnov), those of the wrong one tiny."""
    p, q = target(), draft_at_distance(target(), 0.15)
    right, wrong = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        drafted = sample(q, 5_000, rng)
        right.append(goodness_of_fit(accept_or_resample(p, q, drafted, rng), p).p_value)
        wrong.append(goodness_of_fit(resample_from_target(p, q, drafted, rng), p).p_value)
    assert stats.kstest(right, "uniform").pvalue > 0.001
    assert np.mean(np.array(wrong) < 0.001) > 0.99


@pytest.mark.parametrize("distance", [0.15, 0.47])
def test_acceptance_is_one_minus_the_distance(distance: float) -> None:
    """Tokens are kept at the rate 1 - TV(p, q) (Leviathan et al. 2023, theorem 3.5), within 4 standard errors."""
    p, rng = target(), np.random.default_rng(1)
    q = draft_at_distance(p, distance)
    kept = np.mean(accept(p, q, sample(q, 100_000, rng), rng))
    assert abs(kept - (1 - distance)) < 4 * np.sqrt(distance * (1 - distance) / 100_000)


def test_a_verification_yields_the_expected_tokens_with_the_targets_distribution() -> None:
    """K = 4 drafted tokens yield (1 - a^5) / (1 - a) tokens on average, and every position follows the target."""
    p, rng, trials = target(), np.random.default_rng(2), 20_000
    q = draft_at_distance(p, 0.3)
    runs = [verify(np.tile(p, (5, 1)), np.tile(q, (4, 1)), sample(q, 4, rng), rng) for _ in range(trials)]
    lengths = np.array([len(run) for run in runs])
    expected = (1 - 0.7**5) / (1 - 0.7)
    assert abs(lengths.mean() - expected) < 4 * lengths.std() / np.sqrt(trials)
    for place in range(5):
        tokens = np.array([run[place] for run in runs if len(run) > place])
        assert goodness_of_fit(tokens, p).p_value > 1e-4


def test_tokens_of_a_markov_chain_keep_their_joint_distribution() -> None:
    """Where a token depends on the one before, pairs of emitted tokens follow the target's chain, not the draft's."""
    target_chain = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.4, 0.5, 0.1]])
    draft_chain = np.array([[0.4, 0.4, 0.2], [0.3, 0.3, 0.4], [0.2, 0.3, 0.5]])
    rng, trials = np.random.default_rng(5), 12_000
    pairs = []
    for _ in range(trials):
        tokens: list[int] = []
        while len(tokens) < 2:
            drafted = [tokens[-1] if tokens else 0]
            for _ in range(2):
                drafted.append(int(sample(draft_chain[drafted[-1]], 1, rng)[0]))
            tokens += verify(target_chain[drafted], draft_chain[drafted[:-1]], np.array(drafted[1:]), rng)
        pairs.append(3 * tokens[0] + tokens[1])
    joint = (target_chain[0][:, None] * target_chain).ravel()
    wrong = (draft_chain[0][:, None] * draft_chain).ravel()
    assert goodness_of_fit(np.array(pairs), joint).p_value > 1e-4
    assert goodness_of_fit(np.array(pairs), wrong).p_value < 1e-12


def test_equal_draft_is_always_kept() -> None:
    """A draft equal to the target is never rejected, and a draft at distance 0.2 is that far away."""
    p, rng = target(), np.random.default_rng(3)
    assert accept(p, p, sample(p, 1_000, rng), rng).all()
    assert residual(p, p).tolist() == p.tolist()
    assert total_variation(p, draft_at_distance(p, 0.2)) == pytest.approx(0.2)
