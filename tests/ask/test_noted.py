"""What an answer says of the runs that it kept, where the disk takes no more by then."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cli.running import invoke, workload
from tests.records import made
from tests.records.test_open_run import BLANK

from servewise.ask.run import NOT_KEPT, noted
from servewise.caveats import Caveat
from servewise.records.open_run import OpenRun
from servewise.records.placing import unwritable
from servewise.records.run_directory import read_run, write_run

CAVEATS = (Caveat("trace-sorted", "rows were sorted", "sort them"),)


def refusing(runs: Sequence[Path], caveats: object) -> None:
    """A disk that has become read-only."""
    raise unwritable(runs[0], OSError(errno.EROFS, "Read-only file system")) from OSError(errno.EROFS, "")


def test_whole_runs_hold_the_caveats_and_the_answer_has_no_more(tmp_path: Path) -> None:
    """Nothing is said of runs that are whole."""
    write_run(tmp_path / "a", made.simulated_run())

    assert noted([tmp_path / "a"], CAVEATS) == CAVEATS
    assert read_run(tmp_path / "a").caveats == CAVEATS


def test_runs_without_records_are_counted(tmp_path: Path) -> None:
    """One of two was announced and never ended: told first, and the other has its caveats."""
    write_run(tmp_path / "a", made.simulated_run())
    OpenRun.announce(tmp_path / "b", BLANK).close()
    first, *others = noted([tmp_path / "a", tmp_path / "b"], CAVEATS)

    assert (first.code, tuple(others)) == (NOT_KEPT, CAVEATS)
    assert "the records of 1 of 2 runs could not be written" in first.message
    assert read_run(tmp_path / "a").caveats == CAVEATS


def test_read_only_after_the_last_run_loses_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is shown, exit 2, and says what is not in the runs; they are whole."""
    monkeypatch.setattr("servewise.ask.run.note_caveats", refusing)
    asked = ("simulate", "llama-2-13b", "--accelerator", "a100-80gb", "--estimator", "ideal", "--seeds", "1")
    load = ("--rate", "1", "--workload", workload(tmp_path), "--run-dir", str(tmp_path / "run"))
    found = invoke(*asked, *load)

    assert found.exit_code == 2
    assert "Latency by policy and rate" in found.stdout
    assert "Read-only file system" in " ".join(found.stdout.split())
    assert len(read_run(tmp_path / "run").requests) == 60
