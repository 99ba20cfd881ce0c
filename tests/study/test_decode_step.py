"""The study's decode-step table and what it concludes from it."""

from __future__ import annotations

import pytest

from servewise.study.decode_step import decode_step_table, ridge
from servewise.study.row import StudyTable

STUDY = {1: (0.08, 13.8, 72), 4: (0.33, 16.4, 245), 8: (0.67, 19.7, 406), 16: (1.33, 26.4, 606), 32: (2.67, 39.8, 803)}


@pytest.fixture(scope="module")
def table() -> StudyTable:
    """The table, computed once."""
    return decode_step_table()


@pytest.mark.parametrize("batch", STUDY)
def test_compute_time(table: StudyTable, batch: int) -> None:
    """Compute takes 2 x 13e9 x batch / 312e12 s: the study's milliseconds."""
    (row,) = table.select("compute", batch=batch)
    assert row.ours == pytest.approx(2 * 13e9 * batch / 312e12 * 1e3)
    assert round(row.ours, 2) == STUDY[batch][0]


@pytest.mark.parametrize("batch", STUDY)
def test_memory_time(table: StudyTable, batch: int) -> None:
    """Memory takes (26e9 + batch x 2,048 x 819,200) / 2e12 s: the study's milliseconds."""
    (row,) = table.select("memory", batch=batch)
    assert row.ours == pytest.approx((26e9 + batch * 2048 * 819_200) / 2e12 * 1e3)
    assert round(row.ours, 1) == STUDY[batch][1]


@pytest.mark.parametrize("batch", STUDY)
def test_tokens_per_second(table: StudyTable, batch: int) -> None:
    """The output rate is the batch over the longer of the two times: the study's tokens per second."""
    (row,) = table.select("output rate", batch=batch)
    assert round(row.ours) == STUDY[batch][2]


def test_batching_is_sublinear(table: StudyTable) -> None:
    """Batch 32 gives 11 times the tokens of batch 1 in steps 2.9 times as long."""
    assert round(table.select("output rate over batch 1")[0].ours) == 11
    assert round(table.select("step time over batch 1")[0].ours, 1) == 2.9


def test_compute_is_under_a_tenth_of_every_step(table: StudyTable) -> None:
    """Compute stays under 10% of the step at every batch of the table."""
    assert 0 < table.select("largest compute share of a step")[0].ours < 0.10


def test_ridge_without_a_cache() -> None:
    """Without a KV cache the weights turn compute-bound at 312e12 / 2e12 = 156 sequences."""
    assert ridge() == 156


def test_every_row_agrees(table: StudyTable) -> None:
    """No row of the table disagrees."""
    assert table.agrees
