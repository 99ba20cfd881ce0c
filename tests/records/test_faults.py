"""A disk that fails at any one call: what ended before is kept, what is there is read, one line says what failed."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.records import made
from tests.records.faults import Disk
from tests.records.test_open_run import BLANK, WHOLE

from servewise.atomic import is_part, replace_whole
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.records.begun import Begun, read_begun
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import HEADER, read_run, write_run

CODES = [errno.ENOSPC, errno.EROFS, errno.EIO]
BEGUN = Begun(command="servewise simulate", conditions=made.CONDITIONS, runs=("a",))


def each_failure(folder: Path, code: int, act: Callable[[Path], object], look: Callable[[Path, bool], None]) -> int:
    """``act`` once for each call that it makes to the disk, which fails; then ``look`` at its place, and whether."""
    failing = 0
    while True:
        failing += 1
        place = folder / str(failing) / "run"
        place.parent.mkdir()
        error, calls = outcome(act, place, failing, code)
        if calls < failing:
            return failing - 1
        assert error is None or (isinstance(error, InputError) and "\n" not in str(error))
        look(place, error is not None)


def outcome(act: Callable[[Path], object], place: Path, failing: int, code: int) -> tuple[Exception | None, int]:
    """How ``act`` ended on a disk that fails at its ``failing``-th call, and how many calls it made."""
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, failing, code)
        try:
            act(place)
        except (InputError, OSError) as error:
            return error, len(disk.calls)
        return None, len(disk.calls)


def measured(place: Path) -> None:
    """A measured run from its beginning to its end; ``kept`` beside it counts the rows that it was told are kept."""
    run = OpenRun.begin(place, BLANK)
    kept = place.parent / "kept"
    try:
        for row in range(3):
            run.append(made.measured(), row)
            kept.write_text(str(row + 1))
        run.finish(WHOLE)
    finally:
        run.close()


@pytest.mark.parametrize("code", CODES)
def test_a_measured_run_loses_no_row_that_was_kept(tmp_path: Path, code: int) -> None:
    """Each write, flush, move and removal fails in turn: the rows told as kept are read, or there is no folder."""

    def look(place: Path, failed: bool) -> None:
        kept = place.parent / "kept"
        rows = int(kept.read_text()) if kept.exists() else 0
        if not place.exists():
            assert failed
            assert rows == 0
            assert not [each for each in place.parent.iterdir() if is_part(each.name)]
            return
        back = read_run(place)
        assert list(back.requests.id) == list(range(rows))
        assert failed or rows == 3

    assert each_failure(tmp_path, code, measured, look) > 20


def test_a_simulated_run_is_whole_or_says_that_it_is_not(tmp_path: Path) -> None:
    """Announced and finished on a disk that fails at each call: all rows, or none and the mark."""

    def simulated(place: Path) -> None:
        run = OpenRun.announce(place, BLANK)
        try:
            run.finish(made.simulated_run())
        finally:
            run.close()

    def look(place: Path, failed: bool) -> None:
        if place.exists():
            back = read_run(place)
            assert len(back.requests) == (0 if back.caveats else 3)
        else:
            assert failed

    assert each_failure(tmp_path, errno.ENOSPC, simulated, look) > 15


def test_a_folder_of_runs_says_what_it_is_to_hold_or_is_not_there(tmp_path: Path) -> None:
    """Its plan is placed, and replaced at the end, whole at every moment."""

    def planned(place: Path) -> None:
        BEGUN.place(place).release()
        BEGUN.end(place)

    def look(place: Path, failed: bool) -> None:
        found = read_begun(place) if place.exists() else None
        assert (found is None) <= failed
        assert found is None or found.runs == ("a",)

    assert each_failure(tmp_path, errno.ENOSPC, planned, look) > 8


def test_an_answers_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    """What -o writes, each call failing in turn: the file is never missing, empty or half, and nothing lies beside."""
    for failing in range(1, 100):
        place = tmp_path / str(failing) / "answer.json"
        place.parent.mkdir()
        place.write_bytes(b"the old answer")
        error, calls = outcome(lambda target: replace_whole(target, b"the new answer"), place, failing, errno.ENOSPC)

        assert place.read_bytes() in (b"the old answer", b"the new answer")
        assert [each.name for each in place.parent.iterdir()] == ["answer.json"]
        if calls < failing:
            break
        assert error is not None
    assert failing > 5
    assert place.read_bytes() == b"the new answer"


def test_whole_runs_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """``write_run`` on a disk that fails at each call leaves a run that is read, or no folder."""

    def look(place: Path, failed: bool) -> None:
        assert place.exists() != (failed and not (place / HEADER).exists())
        if place.exists():
            assert len(read_run(place).requests) == 3

    assert each_failure(tmp_path, errno.ENOSPC, lambda place: write_run(place, made.simulated_run()), look) > 12


def test_conditions_are_those_of_the_plan(tmp_path: Path) -> None:
    """A plan comes back as it was."""
    BEGUN.place(tmp_path / "run").release()
    found = read_begun(tmp_path / "run")

    assert found == BEGUN
    assert isinstance(found.conditions, Conditions)
