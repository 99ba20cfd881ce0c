"""A run whose rows go to its directory as they are made: whole at the end, partial before, readable like any other."""

from __future__ import annotations

import dataclasses
import os
import resource
from pathlib import Path

import pytest
from tests.records import made
from tests.records.test_run_directory import assert_equal

from servewise.errors import InputError
from servewise.records import streaming
from servewise.records.columns import RequestColumns, StepColumns
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import RunRecord, read_run
from servewise.records.selection import joined
from servewise.records.streaming import GrowingRun

BLANK = RunRecord(kind="simulated", conditions=made.CONDITIONS, requests=RequestColumns(), slots=4, seed=3)


def _grown(directory: Path, parts: int) -> GrowingRun:
    rows = GrowingRun(directory)
    for _ in range(parts):
        rows.requests(made.requests())
        rows.steps(made.steps())
    return rows


def test_rows_that_came_in_parts_are_read_as_one_run(tmp_path: Path) -> None:
    """Five parts, then the header: the reader finds all rows in order, checks the files, and no part is left behind."""
    run = OpenRun.announce(tmp_path / "run", BLANK)
    rows = _grown(tmp_path / "run", 5)
    assert [each.code for each in read_run(tmp_path / "run").caveats] == ["partial-run"]
    run.finish_grown(BLANK, rows.finish())

    back = read_run(tmp_path / "run")
    assert_equal(back.requests, joined([made.requests()] * 5))
    assert back.steps is not None
    assert list(back.steps.steps) == [1, 3] * 5
    assert (back.slots, back.seed, back.caveats) == (4, 3, ())
    assert sorted(os.listdir(tmp_path / "run")) == ["requests.parquet", "run.json", "steps.parquet"]


def test_rows_leave_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another reader sees them as groups of a bounded number of rows: none of the file's size is held at once."""
    monkeypatch.setattr(streaming, "GROUP_ROWS", 6)
    _grown(tmp_path, 7).finish()

    file = pytest.importorskip("pyarrow.parquet").ParquetFile(tmp_path / "requests.parquet")
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [6, 6, 6, 3]


def test_a_run_without_rows_is_a_run(tmp_path: Path) -> None:
    """Nothing came: both files are there, empty."""
    run = OpenRun.announce(tmp_path / "run", BLANK)
    run.finish_grown(BLANK, GrowingRun(tmp_path / "run").finish())
    back = read_run(tmp_path / "run")
    assert (len(back.requests), len(back.steps or StepColumns())) == (0, 0)


def test_a_run_that_is_left_is_partial_and_its_parts_go(tmp_path: Path) -> None:
    """An error in the middle: the header says partial, nothing else lies there, and the folder can be taken again."""
    run = OpenRun.announce(tmp_path / "run", BLANK)
    _grown(tmp_path / "run", 2).close()
    run.close()
    assert os.listdir(tmp_path / "run") == ["run.json"]
    again = OpenRun.announce(tmp_path / "run", dataclasses.replace(BLANK, seed=4))
    again.close()


def test_a_disk_that_takes_no_more_ends_in_one_line(tmp_path: Path) -> None:
    """Over the system's limit on the size of a file, the writer ends with an InputError that names the folder."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    rows = GrowingRun(tmp_path)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
        with pytest.raises(InputError, match="cannot be written") as caught:
            _fill(rows)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        rows.close()
    assert str(tmp_path) in str(caught.value)
    assert os.listdir(tmp_path) == []


def _fill(rows: GrowingRun) -> None:
    for _ in range(50):
        rows.requests(made.requests())
    rows.finish()
