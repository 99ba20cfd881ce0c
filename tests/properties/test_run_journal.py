"""A run directory under any sequence of rows, kills, power cuts, full disks, torn tails, second writers and ends.

The model is the list of rows that were told as kept: what is read is always these, in order, marked partial until the
run was finished. A kill is a death between or within any two calls to the disk: files and locks go, nothing is tidied.
A power cut takes what was not flushed too, in every way of ``tests.records.powercut``'s model.
"""

from __future__ import annotations

import dataclasses
import errno
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.records import made
from tests.records.faults import Disk
from tests.records.powercut import each_cut, recorded
from tests.records.test_open_run import BLANK

from servewise.errors import InputError
from servewise.records import claim, journal
from servewise.records.claim import Claim, under_way
from servewise.records.columns import RequestColumns, TokenTimes
from servewise.records.journal import as_line, sealed
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import HEADER, PARTIAL, read_run
from servewise.records.selection import joined, selected


class KilledError(BaseException):
    """What a kill is to the program: nothing of it runs any more, no handler of errors either."""


def row_of(number: int, times: list[float], error: str | None) -> RequestColumns:
    """One row that no other is equal to."""
    found = selected(made.measured(), [0])
    found.id[0] = number
    found.token_times = TokenTimes()
    found.token_times.append(times)
    found.errors = {} if error is None else {0: error}
    return found


class RunDirectories(RuleBasedStateMachine):
    """One directory, and what lies in ``cut`` of runs before it."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")  # where a flush costs nothing
        self.root = Path(tempfile.mkdtemp(prefix="servewise-machine-", dir=memory if memory.is_dir() else None))
        self.place = self.root / "run"
        self.run: OpenRun | None = None
        self.rows: list[RequestColumns] = []
        self.cut: list[int] = []
        self.finished = False
        self.told = 0

    def teardown(self) -> None:
        """Close what is open."""
        self._die()
        shutil.rmtree(self.root)

    @initialize()
    def nothing_is_there(self) -> None:
        """A folder that is not there is no run."""
        with pytest.raises(InputError, match="cannot be read"):
            read_run(self.place)

    @precondition(lambda self: self.run is None and not self.place.exists())
    @rule(failing=st.integers(1, 40))
    def begin(self, failing: int) -> None:
        """A new run, perhaps killed while its directory is made: then there is none, or one without rows."""
        self._until_killed(failing, self._begin)

    @precondition(lambda self: self.run is not None)
    @rule(times=st.lists(st.floats(0, 1e6), max_size=3), error=st.none() | st.text(max_size=5))
    def append(self, times: list[float], error: str | None) -> None:
        """A row that is told as kept."""
        assert self.run is not None
        row = self._next(times, error)
        self.run.append(row, 0)
        self.rows.append(row)

    @precondition(lambda self: self.run is not None)
    @rule(code=st.sampled_from([errno.ENOSPC, errno.EDQUOT, errno.EIO]))
    def append_to_a_full_disk(self, code: int) -> None:
        """Half of the line is written, the row is told as not kept, and none of it is there."""
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, 1, code)
            assert self.run is not None
            with pytest.raises(InputError, match="cannot be written"):
                self.run.append(self._next([], None), 0)

    @precondition(lambda self: self.run is not None)
    @rule()
    def another_program(self) -> None:
        """Whoever comes second is refused, and changes nothing."""
        assert under_way(self.place)
        with pytest.raises(InputError, match="not empty"):
            OpenRun.begin(self.place, BLANK)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(claim, "BETWEEN_S", 0.0)
            with pytest.raises(InputError, match="written by another program"):
                Claim(self.place)

    @precondition(lambda self: self.run is not None)
    @rule(part=st.floats(0, 1, exclude_max=True))
    def kill_within_a_row(self, part: float) -> None:
        """The line that was being written has no end: whatever part of it is there, it is no row."""
        line = sealed(as_line(self._next([0.5], None), 0), len(self.rows))
        self._die()
        with (self.place / PARTIAL).open("ab") as file:
            file.write(line[: int(part * len(line))])

    @precondition(lambda self: self.run is not None)
    @rule(failing=st.integers(1, 40), steps=st.booleans())
    def finish(self, failing: int, steps: bool) -> None:
        """The end, perhaps killed on the way: all rows are there either way."""
        whole = joined(self.rows) if self.rows else RequestColumns(token_times=TokenTimes())
        record = dataclasses.replace(BLANK, requests=whole, steps=made.steps() if steps else None)

        def end() -> None:
            assert self.run is not None
            self.run.finish(record)
            self.run = None

        self._until_killed(failing, end)
        self.finished = '"partial"' not in (self.place / HEADER).read_text()

    @precondition(lambda self: self.finished)
    @rule()
    def make_another(self) -> None:
        """The place is free again."""
        shutil.rmtree(self.place)
        self.rows, self.finished = [], False

    @precondition(lambda self: self.run is None and self.place.exists() and not self.finished)
    @rule()
    def set_aside(self) -> None:
        """What was cut off goes to ``cut``, where it is read as it was; the run is made anew."""
        self.place.rename(self.root / f"cut-{len(self.cut)}")
        self.cut.append(len(self.rows))
        self.rows = []

    @invariant()
    def what_is_there_is_what_was_kept(self) -> None:
        """Every row that was told as kept, in order, bit for bit; the mark of a run that is not whole."""
        if not self.place.exists():
            assert not self.rows
            return
        back = read_run(self.place)
        assert [as_line(back.requests, at) for at in range(len(back.requests))] == [
            as_line(each, 0) for each in self.rows
        ]
        assert [each.code for each in back.caveats] == ([] if self.finished else ["partial-run"])
        assert under_way(self.place) == (self.run is not None)

    @invariant()
    def what_was_cut_off_stays(self) -> None:
        """Rows set aside are still read."""
        for number, rows in enumerate(self.cut):
            assert len(read_run(self.root / f"cut-{number}").requests) == rows

    def _begin(self) -> None:
        self.run = OpenRun.begin(self.place, BLANK)

    def _next(self, times: list[float], error: str | None) -> RequestColumns:
        self.told += 1
        return row_of(self.told, times, error)

    def _until_killed(self, failing: int, act: object) -> None:
        """``act``, killed at its ``failing``-th call to the disk, if it makes so many."""
        assert callable(act)
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, failing)
            patch.setattr(Disk, "count", _killing)
            claims = _claims(patch)
            try:
                act()
                return
            except KilledError:
                pass
        self._die()
        for each in claims:
            each.release()

    def _die(self) -> None:
        """What the system does with the files and locks of a process that is gone."""
        run, self.run = self.run, None
        if run is None:
            return
        if run._journal is not None:
            run._journal._flusher._over.set()
            with suppress(OSError):
                run._journal._file.close()
        if run._claim is not None:
            run._claim.release()


def _killing(disk: Disk, name: str) -> None:
    """From the fatal call on there is none: what would tidy up does not run either."""
    disk.calls.append(name)
    if len(disk.calls) >= disk.failing:
        raise KilledError


def _claims(patch: pytest.MonkeyPatch) -> list[Claim]:
    """All claims that are made from now on: the system drops them with the process."""
    found: list[Claim] = []
    real = Claim.__init__

    def made_here(self: Claim, directory: Path) -> None:
        found.append(self)
        real(self, directory)

    patch.setattr(Claim, "__init__", made_here)
    return found


TestRunDirectories = RunDirectories.TestCase
TestRunDirectories.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


ROW = st.tuples(st.lists(st.floats(0, 1e6), max_size=3), st.none() | st.text(max_size=5))


@settings(max_examples=15, deadline=None)
@given(told=st.lists(ROW | st.just("flush"), max_size=6), finish=st.booleans())
def test_after_a_power_cut_all_rows_that_were_flushed_are_there(told: list[Any], finish: bool) -> None:
    """At every state that a cut may leave: rows that were told, in order, the flushed first; whole only with all."""
    rows: list[RequestColumns] = []

    def look(left: Path, promised: list[int]) -> None:
        if not promised:  # not even begun
            return
        back = read_run(left / "run")
        found = [as_line(back.requests, at) for at in range(len(back.requests))]
        truth = [as_line(each, 0) for each in rows]
        partial = "partial-run" in {each.code for each in back.caveats}
        flushed = max(promised)

        assert found[:flushed] == truth[:flushed]
        assert [each["id"] for each in found] == sorted({each["id"] for each in found})
        assert all(each in truth for each in found)
        assert partial or found == truth

    with pytest.MonkeyPatch.context() as patch, recorded() as recording:
        patch.setattr(journal, "SYNC_S", 1e6)
        run = OpenRun.begin(recording.root / "run", BLANK)
        recording.promise(0)
        for each in told:
            if each == "flush":
                assert run._journal is not None
                run._journal._flusher._flush()
                recording.promise(len(rows))
            else:
                rows.append(row_of(len(rows), *each))
                run.append(rows[-1], 0)
        if finish:
            whole = joined(rows) if rows else RequestColumns(token_times=TokenTimes())
            run.finish(dataclasses.replace(BLANK, requests=whole))
        run.close()
        recording.promise(len(rows))
        states = each_cut(recording, look)

    assert states > 5
