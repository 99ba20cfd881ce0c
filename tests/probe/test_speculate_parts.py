"""Parts of the speculation probe against hand calculation and closed forms."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

import numpy as np

from servewise.engine.speculative.acceptance import AcceptanceCounts
from servewise.engine.speculative.costs import BatchCosts, MeasuredCosts
from servewise.probe.speculate.acceptance import Replays, ci95, offer_chances, replayed
from servewise.probe.speculate.costs import batch_costs, drafted, resampled_costs
from servewise.probe.speculate.draft_spec import parse_draft
from servewise.probe.speculate.prediction import predicted, turn_to_loss
from servewise.probe.speculate.speed import identical_share, paired_speedup, rate, seconds_at, tokens_per_verification
from servewise.techniques.speculation import best_row, speedup


def reply(acceptance: float, k: int, tokens: int, seed: int = 0) -> list[list[int]]:
    """Drafts at every token of a reply, each accepted alike, independently."""
    agrees = np.random.default_rng(seed).random(tokens + k) < acceptance
    runs = [next((n for n in range(k) if not agrees[at + n]), k) for at in range(tokens)]
    return [[k, k, run] for run in runs]


def observed(acceptance: float, k: int, tokens: int) -> list[AcceptanceCounts]:
    """Counts by draft length of such a reply."""
    return Replays([reply(acceptance, k, tokens)], k).total()


def test_at_small_batch_the_prediction_is_the_closed_form() -> None:
    """Even acceptance a, a verification that costs a step and a draft of cost c give Leviathan et al.'s theorem 3.8."""
    a, c, step = 0.7, 0.128, 0.02
    costs = BatchCosts(1, tuple(k * c * step for k in range(9)), (step,) * 9)
    rows = predicted(observed(a, 8, 60_000), costs)

    for row in rows:
        assert row.speedup == pytest.approx(speedup(a, row.k, c), rel=0.02)
    assert costs.draft_cost == pytest.approx(c)
    assert best_row(rows).k in (3, 4, 5)  # the closed form's best, 4, and its neighbours within 1%


def test_at_a_batch_beyond_the_ridge_the_prediction_is_a_loss() -> None:
    """Where n tokens cost n steps, K drafts of acceptance a give (1 + a + ... + a^K) / (K + 1) at most: below 1."""
    a, step = 0.6, 0.02
    costs = BatchCosts(64, (0.0,) * 5, tuple(n * step for n in range(1, 6)))
    for row in predicted(observed(a, 4, 60_000), costs)[1:]:
        expected = sum(a**place for place in range(row.k + 1)) / (row.k + 1)

        assert row.speedup == pytest.approx(expected, rel=0.02)
        assert row.speedup < 1
    assert best_row(predicted(observed(a, 4, 500), costs)).k == 0


def test_the_turn_lies_where_the_line_crosses_one() -> None:
    """From 1.65 at batch 1 to 0.84 at 8, over log batch: 8 ** (0.65 / 0.81); none where it never falls below 1."""
    turn = turn_to_loss(4, [(1, 1.65), (8, 0.84)])

    assert turn is not None
    assert turn.batch == pytest.approx(8 ** (0.65 / 0.81))
    assert turn_to_loss(4, [(1, 1.65), (8, 1.2)]) is None
    assert turn_to_loss(4, [(1, 0.9), (8, 0.8)]) is None


def test_bootstrap_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """Of 60 surveys of 20 prompts, the 95% interval of survival at position 1 holds the true 0.6 in most."""
    held = 0
    for seed in range(60):
        prompts = [reply(0.6, 2, 30, 1000 * seed + place) for place in range(20)]
        interval = ci95([each[2].survival()[0] for each in Replays(prompts, 2).resampled(seed)])
        assert interval is not None
        held += interval[0] <= 0.6 <= interval[1]

    assert held >= 50  # 95% of 60 is 57; below 50 has chance 0.001


def test_few_prompts_get_no_interval() -> None:
    """Four prompts are no sample."""
    assert Replays([reply(0.5, 1, 9)] * 4, 1).resampled(0) == []
    assert ci95([]) is None


def test_a_replay_goes_through_a_reply_as_a_run_would() -> None:
    """By hand: at K = 2, tokens 0 (both kept), 3 (one of one kept), 5 (none offered), 6 (refused)."""
    judged = [[3, 3, 3], [3, 3, 0], [3, 3, 0], [3, 1, 1], [3, 0, 0], [3, 0, 0], [2, 2, 0]]
    counts = replayed(judged, 2)

    assert [tuple(each) for each in counts.positions] == [(4, 3, 3, 2), (4, 2, 1, 1)]
    assert replayed(judged, 0).positions == []


def test_totals_of_a_choice_count_prompts_as_often_as_named() -> None:
    """Twice the first prompt is twice its counts."""
    replays = Replays([reply(0.5, 3, 40, 1), reply(0.5, 3, 40, 2)], 3)
    once, twice = (replays.total(each)[3].positions for each in ([0], [0, 0]))

    assert [tuple(2 * count for count in each) for each in once] == [tuple(each) for each in twice]


def test_totals_add_up() -> None:
    """Counts of two prompts together are the sums, also where one was never asked for the later positions."""
    short, long = AcceptanceCounts(), AcceptanceCounts()
    short.observe(1, 1, 1)
    long.observe(3, 2, 1)
    both = AcceptanceCounts()
    both.add(short)
    both.add(long)

    assert [tuple(each) for each in both.positions] == [(2, 2, 2, 2), (1, 1, 1, 0), (1, 0, 0, 0)]
    assert both.survival() == [1.0, 0.0, 0.0]
    assert offer_chances(both) == [1.0, 1.0, 0.0]


def test_drawn_drafts_are_as_long_as_the_measured_ones() -> None:
    """With chances 0.5 and 0.2, of 20 drafts 10 have none, 6 one and 4 two tokens, to one draft, in random order."""
    lengths = drafted([0.5, 0.2], 20, np.random.default_rng(0))

    assert [lengths.count(each) for each in range(3)] == pytest.approx([10, 6, 4], abs=1)
    assert lengths != sorted(lengths)


def test_disturbed_rounds_do_not_count() -> None:
    """Rounds during which threads waited for a core are left out of the mean."""
    calm = [[k, 0.1 * k, 1.0 + k, 0.0] for k in (0, 1) for _ in range(5)]
    held_up = [[k, 5.0, 50.0, 20.0] for k in (0, 1) for _ in range(4)]
    costs = batch_costs(2, [calm, held_up], 1)

    assert costs.verify_s == pytest.approx((1.0, 2.0))
    assert costs.draft_s == pytest.approx((0.0, 0.1))


def test_costs_are_drawn_anew_by_visit() -> None:
    """Two visits of 1 s and 3 s give means of 1, 2 or 3 s, half of them 2; one visit gives itself."""
    visits = [[[0, 0.0, seconds, 0.0]] * 4 for seconds in (1.0, 3.0)]
    drawn = [each.verify_s[0] for each in resampled_costs(1, visits, 0, 400, seed=0)]

    assert set(drawn) == {1.0, 2.0, 3.0}
    assert drawn.count(2.0) == pytest.approx(200, abs=50)
    assert {each.verify_s[0] for each in resampled_costs(1, visits[:1], 0, 9, seed=0)} == {1.0}


def test_costs_lie_between_those_of_measured_batches() -> None:
    """Half-way between batches 1 and 3 costs are half-way; beyond the last they are the last's."""
    costs = MeasuredCosts((BatchCosts(1, (0, 1.0), (2.0, 2.0)), BatchCosts(3, (0, 3.0), (4.0, 6.0))))

    assert costs.verify_s(2, 2) == pytest.approx(4.0)
    assert costs.draft_step_s(2) == pytest.approx(2.0)
    assert costs.verify_s(9, 1) == pytest.approx(4.0)


def test_speedups_are_paired_by_repeat() -> None:
    """A machine twice as slow in the second repeat leaves the ratio as it is, with an interval of no width."""
    plain = [part(1.0, 1.0), part(1.0, 2.0)]
    faster = [part(3.0, 1.5), part(3.0, 3.0)]
    ratio, interval = paired_speedup(faster, plain)

    assert ratio == pytest.approx(2.0)
    assert interval == pytest.approx((2.0, 2.0))
    assert paired_speedup(faster[:1], plain[:1])[1] is None
    assert rate(part(3.0, 1.5)) == pytest.approx(2.0)
    assert tokens_per_verification(faster) == pytest.approx(3.0)


def test_interval_of_paired_speedups_is_students() -> None:
    """Ratios 2 and 8: the mean of logs is ln 4, and the half width 12.706 x ln 2 / ... of two values."""
    _, interval = paired_speedup([part(2.0, 1.0), part(8.0, 1.0)], [part(1.0, 1.0)] * 2)
    half = 12.7062 * (math.log(4) / math.sqrt(2)) / math.sqrt(2)

    assert interval is not None
    assert math.log(interval[1]) - math.log(4) == pytest.approx(half, rel=1e-4)


def test_seconds_are_read_off_the_line_through_rounds() -> None:
    """On a line of 1 s and 0.1 s a token, 5 tokens take 1.5 s, though no round had 5; level rounds give their mean."""
    assert seconds_at(5.0, [(0, 1.0), (2, 1.2), (4, 1.4)]) == pytest.approx(1.5)
    assert seconds_at(5.0, [(3, 1.0), (3, 2.0)]) == pytest.approx(1.5)
    assert seconds_at(5.0, [(0, 2.0), (4, 1.0)]) == pytest.approx(1.5)


def test_outputs_are_compared_one_by_one() -> None:
    """One of two outputs differs: a half is identical."""
    assert identical_share([part(1, 1, [5, 6])], [part(1, 1, [5, 7])]) == 0.5


def part(tokens: float, seconds: float, outputs: list[int] | None = None) -> dict[str, object]:
    """One speed run."""
    return {
        "verifications": 10,
        "tokens_per_verification": tokens,
        "round_s": seconds,
        "outputs": outputs or [],
    }


@pytest.mark.parametrize("text", ["ngram", "ngram:1-3", "self:4", "exit:12", "some/folder", "smollm2-135m-instruct"])
def test_specifications_keep_their_text(text: str) -> None:
    """What was asked for is what the answer names."""
    assert parse_draft(text).text == text
