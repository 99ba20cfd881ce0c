"""A run directory under way: readable at every moment, whole at the end, partial where it was killed."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from tests.records import made
from tests.records.test_run_directory import assert_equal

from servewise.atomic import replace_whole
from servewise.errors import InputError
from servewise.records.columns import RequestColumns
from servewise.records.journal import Journal
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import PARTIAL, RunRecord, read_run

BLANK = RunRecord(kind="measured", conditions=made.CONDITIONS, requests=RequestColumns(), seed=3, command="bench")
WHOLE = dataclasses.replace(BLANK, requests=made.measured(), details={"window": {"start_s": 1.0}})


def begun(directory: Path) -> OpenRun:
    """A run under way with its first two rows."""
    run = OpenRun.begin(directory, BLANK)
    for row in (0, 1):
        run.append(made.measured(), row)
    return run


def codes(directory: Path) -> list[str]:
    """The caveats of what is read there."""
    return [each.code for each in read_run(directory).caveats]


def test_a_run_under_way_reads_as_partial(tmp_path: Path) -> None:
    """What a kill leaves is the rows that had ended, with their conditions and the caveat that says so."""
    run = begun(tmp_path / "deep" / "run")
    back = read_run(tmp_path / "deep" / "run")
    run.close()

    assert list(back.requests.id) == [0, 1]
    assert (back.kind, back.seed, back.conditions) == ("measured", 3, made.CONDITIONS)
    assert codes(tmp_path / "deep" / "run") == ["partial-run"]


def test_a_finished_run_is_whole_and_has_no_journal(tmp_path: Path) -> None:
    """After the end the rows come from Parquet, without the caveat, and nothing else lies there."""
    begun(tmp_path).finish(WHOLE)
    back = read_run(tmp_path)

    assert_equal(back.requests, WHOLE.requests)
    assert back.details == WHOLE.details
    assert codes(tmp_path) == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["requests.parquet", "run.json"]


@pytest.mark.parametrize("failing", ["requests.parquet", "run.json"])
def test_a_disk_that_fills_at_the_end_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Where the last files cannot be written the journal is still what is read."""
    run = begun(tmp_path)

    def replace(target: Path, content: bytes) -> None:
        if target.name == failing:
            raise OSError(28, "No space left on device")
        replace_whole(target, content)

    monkeypatch.setattr("servewise.records.open_run.replace_whole", replace)
    with pytest.raises(InputError, match=r"No space left on device\); what ended before is kept"):
        run.finish(WHOLE)

    assert list(read_run(tmp_path).requests.id) == [0, 1]
    assert codes(tmp_path) == ["partial-run"]


def test_a_disk_that_fills_in_mid_run_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that could not be kept raises InputError with the reason, and the rows before it are read."""
    run = begun(tmp_path)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "append", full)
    with pytest.raises(InputError, match="No space left"):
        run.append(made.measured(), 2)
    run.close()

    assert len(read_run(tmp_path).requests) == 2


def test_an_occupied_or_unwritable_place_is_refused_at_once(tmp_path: Path) -> None:
    """Nothing is overwritten, and a run whose folder cannot be made never begins."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("")
    for place in ("used", "file", "file/under"):
        with pytest.raises(InputError):
            OpenRun.begin(tmp_path / place, BLANK)

    assert (tmp_path / "used" / "thesis.txt").read_text() == "years of work"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused_at_once(tmp_path: Path) -> None:
    """A folder without the right to write is one clear line, before traffic is sent."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="cannot be written"):
            OpenRun.begin(tmp_path / "run", BLANK)
    finally:
        tmp_path.chmod(0o700)


def test_a_header_that_names_another_journal_is_refused(tmp_path: Path) -> None:
    """A header cannot point the reader at any other file."""
    begun(tmp_path).close()
    header = json.loads((tmp_path / "run.json").read_text()) | {"partial": "../../secret"}
    (tmp_path / "run.json").write_text(json.dumps(header))

    with pytest.raises(InputError, match=f"partial must be '{PARTIAL}'"):
        read_run(tmp_path)


def test_row_files_of_a_run_that_never_ended_stand_in_nobodys_way(tmp_path: Path) -> None:
    """Killed, or full, between its Parquet files and its header: the folder is taken over, and holds the new rows."""
    run = OpenRun.announce(tmp_path / "run", BLANK)
    for name in ("requests.parquet", "steps.parquet"):
        (tmp_path / "run" / name).write_bytes(b"of before")
    run.close()
    OpenRun.announce(tmp_path / "run", BLANK).finish(made.simulated_run())

    assert_equal(read_run(tmp_path / "run").requests, made.requests())
    assert codes(tmp_path / "run") == []
