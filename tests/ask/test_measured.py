"""Run directories of measured runs as answers, and as reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.ask.runs_made import measured
from tests.measure.peers import samples

from servewise.ask.measured import measured_answer, side_by_side
from servewise.ask.run import run_answer
from servewise.ask.runs import conditions_in
from servewise.cli.main import servewise


def test_repeats_are_one_row_and_loads_are_several(tmp_path: Path) -> None:
    """Two repeats at 1 and at 4 streams: two rows in order of load, their latencies those of the made server."""
    for streams in (4, 1):
        for repeat in (0, 1):
            place = tmp_path / f"concurrency-{streams}-{repeat + 1}"
            measured(place, streams=streams, repeat=repeat, noise=repeat, count=80, seed=1 + repeat)
    answer = run_answer(tmp_path)
    assert answer.command == "bench"
    assert [row["concurrency"] for row in answer.result["rows"]] == [1, 4]
    for row in answer.result["rows"]:
        assert row["tpot_s"]["p50"] == pytest.approx(0.01, rel=0.03)
        assert row["ttft_s"]["p50"] == pytest.approx(0.1, rel=0.03)
        assert row["outcomes"] == [{"outcome": "completed", "count": 160}]
    assert answer.conditions.load == "1 stream, 4 streams"


def test_twelve_repeats_are_in_their_order(tmp_path: Path) -> None:
    """By name the tenth repeat would stand before the second."""
    for repeat in range(12):
        measured(tmp_path / f"concurrency-4-{repeat + 1}", repeat=repeat, count=8, seed=repeat)
    (condition,) = conditions_in(tmp_path)
    assert [each.record.seed for each in condition.runs] == list(range(12))


@pytest.mark.parametrize("value", [10**400, -4, True, "4", None])
def test_a_damaged_load_is_no_load(tmp_path: Path, value: Any) -> None:
    """A number of streams that no run has is left out: the run is told by the words of its conditions."""
    measured(tmp_path / "run", count=20)
    header = json.loads((tmp_path / "run" / "run.json").read_text())
    header["details"]["concurrency"] = value
    (tmp_path / "run" / "run.json").write_text(json.dumps(header))
    (condition,) = conditions_in(tmp_path / "run")
    assert condition.key == ("load", "4 streams")


def test_ends_are_counted_by_outcome(tmp_path: Path) -> None:
    """5 of 120 connections were reset: a row of its own beside the completed."""
    (row,) = measured_answer(measured(tmp_path / "run", failed=5, count=120)).result["rows"]
    assert {each["outcome"]: each["count"] for each in row["outcomes"]} == {"completed": 115, "reset": 5}


def test_the_timeline_holds_every_token(tmp_path: Path) -> None:
    """Tokens/s over 100 slices add up to the tokens of the run; never more requests are open than there are streams."""
    answer = measured_answer(measured(tmp_path / "run", count=100, details={"server": {"engine": "vllm"}}))
    timeline: dict[str, Any] = answer.result["detail"][0]["timeline"]
    width = timeline["time_s"][1] - timeline["time_s"][0]
    assert sum(timeline["output_tokens_per_s"]) * width == pytest.approx(100 * 16)
    assert max(timeline["open"]) == 4
    assert timeline["server"] == {"engine": "vllm"}


def test_the_curve_of_gaps_is_that_of_the_gaps(tmp_path: Path) -> None:
    """15 gaps a request, all of its pace (10 ms, spread 5%): the curve's median is 10 ms, its ends the extremes."""
    answer = measured_answer(measured(tmp_path / "run", count=200))
    curve = answer.result["detail"][0]["itl"]
    assert np.interp(0.5, curve["share"], curve["value_s"]) == pytest.approx(0.01, rel=0.02)
    assert curve["value_s"] == sorted(curve["value_s"])
    assert (curve["share"][0], curve["share"][-1]) == (0.0, 1.0)
    assert answer.result["detail"][0]["tokens_per_event"] == 1.0


def test_runs_side_by_side_keep_their_names_and_conditions(tmp_path: Path) -> None:
    """Two runs on two cards: rows told by run, and the conditions say which is which."""
    a = measured_answer(measured(tmp_path / "a", count=60))
    b = measured_answer(measured(tmp_path / "b", count=60, conditions={"hardware": "1 x other card"}))
    both = side_by_side({"old": a, "new": b})
    assert [row["run"] for row in both.result["rows"]] == ["old", "new"]
    assert both.conditions.hardware == "old: 1 x test card; new: 1 x other card"


def test_report_of_two_runs_compares_them(tmp_path: Path) -> None:
    """`report A B`: the comparison first, then both side by side, then each; a client's result file does as well."""
    a, b = measured(tmp_path / "a", count=60), measured(tmp_path / "b", count=60, tpot_s=0.02)
    c = samples.written(tmp_path / "vllm.json", samples.vllm())
    for second, compared in ((b, True), (c, True)):
        output = tmp_path / f"{second.stem}.md"
        done = CliRunner().invoke(servewise, ["report", str(a), str(second), "-o", str(output)])
        assert done.exit_code == 0, done.output
        page = output.read_text("utf-8")
        assert ("## Two runs compared" in page) is compared
        assert "## Side by side" in page
        assert page.index("## Side by side") < page.index("## A\n")


def test_report_takes_the_answer_that_bench_kept(tmp_path: Path) -> None:
    """Where bench.json lies beside the runs its own rows are shown, with the gaps and the timeline of the runs."""
    measured(tmp_path / "runs" / "concurrency-4", count=80)
    kept = measured_answer(tmp_path / "runs").to_json()
    kept["result"]["rows"][0]["requests"] = 4321
    (tmp_path / "runs" / "bench.json").write_text(json.dumps(kept), "utf-8")
    output = tmp_path / "report.html"
    done = CliRunner().invoke(servewise, ["report", str(tmp_path / "runs"), "-o", str(output)])
    assert done.exit_code == 0, done.output
    page = output.read_text("utf-8")
    assert "4,321" in page
    assert "Distribution of inter-token latency" in page


def test_what_is_neither_an_answer_nor_a_result_is_one_line(tmp_path: Path) -> None:
    """A JSON file of another kind is refused as before, with exit code 2."""
    path = samples.written(tmp_path / "x.json", {"a": 1})
    done = CliRunner().invoke(servewise, ["report", str(path), "-o", str(tmp_path / "x.html")])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
