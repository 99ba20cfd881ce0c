"""A power cut at any moment: what was promised is there, what is there opens, and what is not whole says so."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tests.records import made
from tests.records.powercut import Recording, each_cut, recorded
from tests.records.test_open_run import BLANK, WHOLE

from servewise.atomic import is_part, replace_whole
from servewise.records import journal
from servewise.records.begun import Begun, read_begun
from servewise.records.journal import as_line
from servewise.records.noted import note_caveats
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import HEADER, RunRecord, read_run, write_run
from servewise.records.streaming import GrowingRun

BEGUN = Begun(command="servewise simulate", conditions=made.CONDITIONS, runs=("a",))
ROWS = [as_line(made.measured(), row) for row in range(3)]


@pytest.fixture(autouse=True)
def flushes_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal's own thread comes at no moment of its own."""
    monkeypatch.setattr(journal, "SYNC_S", 1e6)


def measured(recording: Recording, place: Path) -> None:
    """Three rows, flushed after the first two, and the end; promised is how many rows are on the disk, then all."""
    run = OpenRun.begin(place, BLANK)
    recording.promise(0)
    for row in range(3):
        run.append(made.measured(), row)
        if row == 1:
            assert run._journal is not None
            run._journal._flusher._flush()
            recording.promise(2)
    run.finish(WHOLE)
    recording.promise("whole")


@pytest.mark.parametrize("place", ["run", "deep/in/new folders/run", "empty"])
def test_a_measured_run_has_all_rows_that_were_flushed(place: str) -> None:
    """From its folder's making to its end, in a place that is new, deep, or there: the rows in order, at least those
    flushed; the mark until it is whole; never a folder that does not open."""

    def look(left: Path, promised: list[Any]) -> None:
        if not (left / place / HEADER).exists():
            assert not promised
            assert not [each for each in left.rglob("*") if each.is_file() and not any(map(is_part, each.parts))]
            return
        back = read_run(left / place)
        rows = [as_line(back.requests, row) for row in range(len(back.requests))]
        partial = "partial-run" in {each.code for each in back.caveats}

        assert all(row in ROWS for row in rows)
        assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
        flushed = max((each for each in promised if each != "whole"), default=0)
        assert rows[:flushed] == ROWS[:flushed]
        assert partial or rows == ROWS
        assert not (partial and "whole" in promised)

    with recorded() as recording:
        if place == "empty":
            (recording.root / place).mkdir()
            recording.begin()
        measured(recording, recording.root / place)
        assert each_cut(recording, look) > 60


def test_a_simulated_run_is_whole_or_marked() -> None:
    """Announced, grown row group by row group, finished, its caveats noted: marked and without rows, or all of it."""

    def look(left: Path, promised: list[Any]) -> None:
        if not (left / "run" / HEADER).exists():
            assert not promised
            return
        back = read_run(left / "run")
        partial = any(each.code == "partial-run" for each in back.caveats)
        assert partial == (len(back.requests) == 0)
        assert len(back.requests) in (0, 3)
        assert partial or len(back.steps or ()) == 2
        assert not partial or "whole" not in promised
        assert ("noted" in {each.code for each in back.caveats}) or "noted" not in promised

    with recorded() as recording:
        place = recording.root / "run"
        run = OpenRun.announce(place, BLANK)
        recording.promise("announced")
        growing = GrowingRun(place)
        growing.requests(made.requests())
        growing.steps(made.steps())
        run.finish_grown(dataclasses.replace(BLANK, kind="simulated"), growing.finish())
        recording.promise("whole")
        note_caveats([place], [made_caveat()])
        recording.promise("noted")
        assert each_cut(recording, look) > 30


def test_a_run_that_is_taken_over_is_there_all_along() -> None:
    """Announced, killed, announced again and finished in memory: the folder opens at every moment."""

    def look(left: Path, promised: list[Any]) -> None:
        back = read_run(left / "run")
        assert len(back.requests) == 3 or "whole" not in promised

    with recorded() as recording:
        place = recording.root / "run"
        OpenRun.announce(place, BLANK).close()
        recording.begin()
        OpenRun.announce(place, BLANK).finish(made.simulated_run())
        recording.promise("whole")
        assert each_cut(recording, look) > 10


def test_a_plan_and_what_it_is_replaced_by_are_whole() -> None:
    """``begun.json`` is as it was before or after each change, from when it was placed."""

    def look(left: Path, promised: list[Any]) -> None:
        found = read_begun(left / "deep" / "plan") if (left / "deep" / "plan").exists() else None
        assert found is not None or not promised
        if found is not None:
            assert found.runs == ("a",)
            assert found.whole or "ended" not in promised

    with recorded() as recording:
        place = recording.root / "deep" / "plan"
        BEGUN.place(place).release()
        recording.promise("placed")
        BEGUN.end(place)
        recording.promise("ended")
        assert each_cut(recording, look) > 15


def test_an_answer_is_the_old_one_or_the_new_one() -> None:
    """What -o writes over an older answer, and a run written at once."""

    def look(left: Path, promised: list[Any]) -> None:
        held = (left / "answer.json").read_bytes() if (left / "answer.json").exists() else None
        assert (
            held
            in {None: (None, b"old"), "old": (b"old", b"new"), "new": (b"new",)}[
                next((each for each in reversed(promised) if each != "run"), None)
            ]
        )
        if (left / "run" / HEADER).exists():
            assert len(read_run(left / "run").requests) == 3
        else:
            assert "run" not in promised

    with recorded() as recording:
        for content in ("old", "new"):
            replace_whole(recording.root / "answer.json", content.encode())
            recording.promise(content)
        write_run(recording.root / "run", whole())
        recording.promise("run")
        assert each_cut(recording, look) > 20


def whole() -> RunRecord:
    """A run."""
    return made.simulated_run()


def made_caveat() -> Any:
    """What an answer adds."""
    from servewise.caveats import Caveat

    return Caveat("noted", "what an answer says of it", "nothing")


def test_the_model_finds_what_is_not_flushed() -> None:
    """A file written and moved without a flush may be missing, empty, half, or zeros: the model has it all."""
    found = set()

    def look(left: Path, _: list[Any]) -> None:
        place = left / "answer.json"
        found.add(place.read_bytes() if place.exists() else None)

    with recorded() as recording:
        part = recording.root / "part"
        part.write_bytes(json.dumps([1, 2]).encode())
        part.replace(recording.root / "answer.json")
        recording.promise("there")
        each_cut(recording, look)

    assert found == {None, b"", b"[1,", bytes(6), b"[1, 2]", bytes(3) + b" 2]"}
