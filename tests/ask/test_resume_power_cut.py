"""A power cut while a measurement is gone on with: the rows of its first part are never lost, and it goes on again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ask.test_bench_resume import changed, measured
from tests.records.powercut import each_cut, recorded

from servewise.ask.bench import resume
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock
from servewise.records import journal
from servewise.records.begun import read_begun
from servewise.records.journal import as_line
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import HEADER, read_run

ONE: dict[str, Any] = {"repeats": 1, "concurrency": (2,), "requests": 6}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningMock]:
    """A quick server."""
    with running_mock(MockPlan(first_s=(0.005, 0.005), gap_s=0.002)) as found:
        yield found


def cut_off_itself(folder: Path, rows: int) -> list[dict[str, Any]]:
    """The only run of ``folder``, which lies in the folder itself, as a kill leaves it; its rows."""
    record = replace(read_run(folder), details={})
    for name in ("run.json", "requests.parquet", "client.json", "bench.json"):
        (folder / name).unlink()
    changed(folder / "begun.json", whole=False)
    run = OpenRun.begin(folder, record, claimed=True)
    for row in range(rows):
        run.append(record.requests, row)
    run.close()
    return rows_at(folder)


def rows_at(folder: Path) -> list[dict[str, Any]]:
    """The requests that are read there."""
    if not (folder / HEADER).exists():
        return []
    found = read_run(folder).requests
    return [as_line(found, row) for row in range(len(found))]


def test_a_first_part_is_set_aside_and_never_lost(server: RunningMock, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every state its rows are in the folder or in ``cut``, all of them; what is begun says so; the end is whole."""
    monkeypatch.setattr(journal, "SYNC_S", 1e6)
    lost: list[dict[str, Any]] = []

    def look(left: Path, promised: list[Any]) -> None:
        place = left / "d"
        begun = read_begun(place)
        places = [place, *sorted((place / "cut").glob("run-*"))]
        lost.extend(row for row in kept if not any(row in rows_at(each) for each in places))
        assert begun is not None
        assert begun.whole or not promised
        assert not promised or len(rows_at(place)) == 6

    with recorded() as recording:
        place = recording.root / "d"
        assert measured(server, place, **ONE) is not None
        kept = cut_off_itself(place, 4)
        recording.begin()
        resume(place)
        recording.promise("whole")
        states = each_cut(recording, look)

    assert len(kept) == 4
    assert states > 100
    assert lost == []
