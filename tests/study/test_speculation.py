"""The study's speculation table, each figure checked by its formula."""

from __future__ import annotations

import pytest

from servewise.study.row import StudyTable
from servewise.study.speculation import speculation_table

STUDY = [
    (0.05, 0.5, 3, 1.63),
    (0.05, 0.7, 6, 2.35),
    (0.05, 0.8, 8, 3.09),
    (0.05, 0.9, 13, 4.67),
    (0.128, 0.5, 2, 1.39),
    (0.128, 0.7, 4, 1.83),
    (0.128, 0.8, 5, 2.25),
    (0.128, 0.9, 9, 3.03),
]


@pytest.fixture(scope="module")
def table() -> StudyTable:
    """The table, computed once."""
    return speculation_table()


@pytest.mark.parametrize(("cost", "acceptance", "k", "gain"), STUDY)
def test_best_k_and_speedup(table: StudyTable, cost: float, acceptance: float, k: int, gain: float) -> None:
    """Best K and speed-up are the study's, and no K up to 40 beats it in (1 - a^(K+1)) / (1 - a) / (K c + 1)."""
    (best,) = table.select("best K", draft_cost=cost, acceptance=acceptance)
    (speedup,) = table.select("speed-up", draft_cost=cost, acceptance=acceptance)
    by_hand = [(1 - acceptance ** (n + 1)) / (1 - acceptance) / (n * cost + 1) for n in range(41)]
    assert best.ours == k == max(range(41), key=by_hand.__getitem__)
    assert round(speedup.ours, 2) == gain == round(max(by_hand), 2)


@pytest.mark.parametrize(("acceptance", "tokens"), [(0.5, 1.94), (0.7, 2.77), (0.8, 3.36), (0.9, 4.10)])
def test_tokens_per_verification(table: StudyTable, acceptance: float, tokens: float) -> None:
    """At K = 4 a verification yields the study's tokens: 1 + a + a^2 + a^3 + a^4."""
    (row,) = table.select("tokens per verification at K = 4", acceptance=acceptance)
    assert round(row.ours, 2) == tokens == round(sum(acceptance**n for n in range(5)), 2)


def test_draft_cost_and_the_acceptance_for_twice_the_speed(table: StudyTable) -> None:
    """1.8 / 14.1 ms is the study's 0.128, and doubling needs an acceptance between its 0.7 (1.83x) and 0.8 (2.25x)."""
    (cost,) = table.select("draft cost of 1.8 against 14.1 ms")
    (needed,) = table.select("acceptance needed for 2x")
    assert round(cost.ours, 3) == 0.128
    assert 0.7 < needed.ours < 0.8
    assert table.agrees
