"""``report`` opens a run at every moment of it, and says in every form what is not there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.running import invoke
from tests.records import made
from tests.records.test_open_run import BLANK, WHOLE

from servewise.records.begun import Begun
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import PARTIAL

KNOWN = {"concurrency": 4, "rate_per_s": None, "repeat": 0}
PLAN = Begun(command="servewise bench", conditions=made.CONDITIONS, runs=("a", "b", "c"))


def begun(place: Path, rows: int = 0) -> OpenRun:
    """A measured run with its first rows."""
    run = OpenRun.begin(place, replace(BLANK, details=KNOWN))
    for row in range(rows):
        run.append(made.measured(), row)
    return run


def before_its_journal(place: Path) -> None:
    """Killed between the header and the journal's making."""
    begun(place).close()
    (place / PARTIAL).unlink()


def without_rows(place: Path) -> None:
    """Begun, and no request ended."""
    begun(place).close()


def with_rows(place: Path) -> None:
    """Two requests ended."""
    begun(place, 2).close()


def with_failures_alone(place: Path) -> None:
    """The only request that ended had failed."""
    run = begun(place)
    run.append(made.measured(), 2)
    run.close()


def before_its_header_was_replaced(place: Path) -> None:
    """The Parquet file is there, the header still says partial."""
    begun(place, 3).close()
    other = OpenRun.begin(place.with_name("other"), BLANK)
    other.finish(WHOLE)
    shutil.copy(place.with_name("other") / "requests.parquet", place)


def under_way(place: Path) -> None:
    """Its writer lives."""
    UNDER_WAY.append(begun(place, 1))


def announced(place: Path) -> None:
    """A simulated run that was killed."""
    OpenRun.announce(place, replace(BLANK, kind="simulated", details={"policy": "vllm", "rate_per_s": 2.0})).close()


def planned(place: Path) -> None:
    """A measurement that was killed before its first run."""
    PLAN.place(place).release()


def simulations_planned(place: Path) -> None:
    """A sweep that was killed before its first run."""
    replace(PLAN, command="servewise simulate").place(place).release()


def one_of_three(place: Path) -> None:
    """A measurement that was killed in its second run."""
    PLAN.place(place).release()
    OpenRun.begin(place / "a", BLANK).finish(replace(WHOLE, details=KNOWN))
    begun(place / "b", 1).close()


UNDER_WAY: list[OpenRun] = []
MOMENTS: dict[Callable[[Path], None], str] = {
    before_its_journal: "0 requests had ended by then",
    without_rows: "0 requests had ended by then",
    with_rows: "2 requests had ended by then; those under way are not known",
    with_failures_alone: "1 requests had ended by then",
    before_its_header_was_replaced: "3 requests had ended by then",
    under_way: "the run goes on: 1 requests had ended by then",
    announced: "its requests are kept at the end, which never came",
    planned: "0 of 3 runs are whole",
    simulations_planned: "0 of 3 runs are whole",
    one_of_three: "1 of 3 runs are whole, 1 was cut off",
}


@pytest.mark.parametrize("kind", [".html", ".md", ".json"])
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda each: each.__name__)
def test_every_moment_opens_and_is_marked(tmp_path: Path, moment: Callable[[Path], None], kind: str) -> None:
    """Exit 0, the word partial and what is missing, in HTML, Markdown and JSON alike."""
    moment(tmp_path / "run")
    found = invoke("report", str(tmp_path / "run"), "--output", str(tmp_path / f"r{kind}"))
    for each in UNDER_WAY:
        each.close()
    UNDER_WAY.clear()
    text = (tmp_path / f"r{kind}").read_text()

    assert found.exit_code == 0, found.stderr
    assert "artial: " in text
    assert MOMENTS[moment] in text
    if kind == ".json":
        assert "partial-run" in {each["code"] for each in json.loads(text)["caveats"]}


def test_the_journal_not_yet_removed_is_a_whole_run(tmp_path: Path) -> None:
    """Killed after the header was replaced: all is there, and nothing says otherwise."""
    run = begun(tmp_path / "run", 3)
    journal = (tmp_path / "run" / PARTIAL).read_bytes()
    run.finish(replace(WHOLE, details=KNOWN))
    (tmp_path / "run" / PARTIAL).write_bytes(journal)
    document = json.loads(invoke("report", str(tmp_path / "run"), "--json").stdout)

    assert [each["code"] for each in document["caveats"]] == []
    assert document["result"]["rows"][0]["completed"] == 2


def test_a_cut_run_is_in_no_figure_where_others_are_whole(tmp_path: Path) -> None:
    """One repeat whole, one cut off after a row: the row of that load is of the whole one, and the cut is told."""
    one_of_three(tmp_path / "run")
    document = json.loads(invoke("report", str(tmp_path / "run"), "--json").stdout)

    assert [row["completed"] for row in document["result"]["rows"]] == [2]
    assert len([each for each in document["caveats"] if each["code"] == "partial-run"]) == 2


def test_a_damaged_journal_is_told_by_its_lines(tmp_path: Path) -> None:
    """A flipped bit in the second of three lines: two rows, and the line that is not what was written."""
    with_rows(tmp_path / "run")
    path = tmp_path / "run" / PARTIAL
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b'"id":1', b'"id":3') + second.replace(b'"row":1', b'"row":2'))
    document = json.loads(invoke("report", str(tmp_path / "run"), "--json").stdout)
    told = {each["code"]: each["message"] for each in document["caveats"]}

    assert "lines 2, 3 are not what was written" in told["damaged-journal"]
    assert "1 requests had ended by then" in told["partial-run"]


def test_a_plan_that_is_damaged_is_one_line(tmp_path: Path) -> None:
    """What stands in begun.json may be anything."""
    for text in ("{", "[]", '{"schema": "servewise.begun/1"}', "[" * 100_000):
        planned(tmp_path / "run")
        (tmp_path / "run" / "begun.json").write_text(text)
        found = invoke("report", str(tmp_path / "run"), "--json")
        shutil.rmtree(tmp_path / "run")

        assert found.exit_code == 2
        assert "begun.json" in found.stderr
        assert found.stderr.count("\n") == 1
