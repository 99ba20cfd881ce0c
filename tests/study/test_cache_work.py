"""The study's first table: what a KV cache saves, and that it changes nothing."""

from __future__ import annotations

import pytest

from servewise.study.cache_work import ROUNDING_LIMIT, cache_work_table
from servewise.study.row import StudyTable


@pytest.fixture(scope="module")
def table() -> StudyTable:
    """The table, computed once."""
    return cache_work_table()


@pytest.mark.parametrize(("tokens", "positions"), [(20, 290), (40, 980), (80, 3560), (160, 13520)])
def test_positions_without_cache(table: StudyTable, tokens: int, positions: int) -> None:
    """Without a cache the positions are the study's, and 5 + 6 + ... + (N + 4) by hand."""
    (row,) = table.select("positions, no cache", tokens=tokens)
    assert row.ours == positions == sum(range(5, 5 + tokens))


@pytest.mark.parametrize(("tokens", "positions"), [(20, 25), (40, 45), (80, 85), (160, 165)])
def test_positions_with_cache(table: StudyTable, tokens: int, positions: int) -> None:
    """With a cache the positions are the study's: the prompt once, then each token once."""
    (row,) = table.select("positions, cache", tokens=tokens)
    assert row.ours == positions == 5 + tokens


@pytest.mark.parametrize(("tokens", "study"), [(20, 4e-15), (40, 5e-15), (80, 7e-15), (160, 7e-15)])
def test_logits_differ_by_rounding_only(table: StudyTable, tokens: int, study: float) -> None:
    """The largest logit difference is float64 rounding, of the study's order of magnitude."""
    (row,) = table.select("max logit difference", tokens=tokens)
    assert 0.1 * study <= row.ours <= 10 * study < ROUNDING_LIMIT
    assert row.agrees


@pytest.mark.parametrize("tokens", [20, 40, 80, 160])
def test_both_runs_choose_the_same_tokens(table: StudyTable, tokens: int) -> None:
    """Greedy tokens are equal with and without cache, and no tie decided it."""
    (row,) = table.select("tokens equal", tokens=tokens)
    assert row.agrees


def test_wall_time_is_not_judged(table: StudyTable) -> None:
    """Wall time depends on the machine: it is shown, with no verdict."""
    assert [row.agrees for row in table.select("wall time, cache")] == [None]
