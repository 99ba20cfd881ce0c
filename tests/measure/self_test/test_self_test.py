"""The self-test from end to end, small."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from servewise.ask.self_test import self_test, statement
from servewise.errors import InputError
from servewise.measure.mock.process import running_mock
from servewise.measure.self_test.accuracy import Accuracy
from servewise.measure.self_test.kept import known_error
from servewise.measure.self_test.trial import PLAN, Trial, run_trial
from servewise.report.terminal import print_answer

QUICK = replace(PLAN, first_s=(0.02, 0.03), gap_s=0.004)


def test_a_trial_measures_every_request() -> None:
    """All requests of a closed loop complete, each token is paired with its true time, and no error is absurd."""
    with running_mock(QUICK) as server:
        found = run_trial(server, Trial(streams=4, rounds=3, most_s=20.0, tokens=16))
    assert (found.requests, found.failed, found.tokens) == (12, 0, 192)
    assert (found.ttft.n, found.tpot.n, found.arrival.n) == (12, 12, 192)
    assert found.ttft.p50_size_s < 0.05
    assert 0 < found.cpu_s_per_token < 0.1
    assert found.server_cpu_s_per_token > 0
    assert 0 < found.tokens_per_s < 4 * 16 / 0.08


def test_a_trial_ends_in_its_time() -> None:
    """A load that would take far longer is over soon after its time; what was cut off is counted as failed."""
    with running_mock(replace(QUICK, first_s=(60.0, 60.0))) as server:
        found = run_trial(server, Trial(streams=3, rounds=50, most_s=0.2))
    assert (found.requests, found.failed) == (3, 3)
    assert found.wall_s < 20


def test_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has conditions, a row for each load, one sentence that says how far, is kept, and can be printed."""
    monkeypatch.setattr("servewise.ask.self_test.PLAN", QUICK)
    answer = self_test((2, 1), rounds=1, cache=tmp_path)
    assert [row["streams"] for row in answer.result["rows"]] == [1, 2]
    assert "closed loop at 1, 2 streams" in answer.conditions.load
    assert answer.result["kept"] == str(tmp_path / "self-test.json")
    assert known_error(1, 1, tmp_path) is not None
    out = io.StringIO()
    print_answer(answer, Console(file=out, width=120))
    assert answer.result["statement"] in out.getvalue()
    assert "TTFT error" in out.getvalue()


def test_the_statement_stops_at_the_first_load_that_is_not_good() -> None:
    """'Up to' holds for every smaller load too; a failed or wrong load ends it, and none good is said plainly."""
    with running_mock(QUICK) as server:
        found = run_trial(server, Trial(streams=1, rounds=1, most_s=20.0, tokens=4))

    def at(streams: int, p99_s: float, failed: int = 0) -> Accuracy:
        return replace(found, streams=streams, ttft=replace(found.ttft, p99_size_s=p99_s), failed=failed)

    good = [at(1, 0.00031), at(32, 0.0021), at(256, 0.009), at(1024, 0.001)]
    assert statement(good).startswith("TTFT error under 3 ms (p99) up to 32 streams")
    assert statement([at(1, 0.00031), at(32, 0.0001, failed=1)]).startswith(
        "TTFT error under 0.4 ms (p99) up to 1 stream "
    )
    assert "already at 1 stream here" in statement([at(1, 0.02)])


def test_wrong_numbers_are_refused() -> None:
    """Streams, rounds and workers are whole numbers within reason."""
    for wrong in ({"streams": 0}, {"streams": (1, 10**6)}, {"rounds": 0}, {"workers": -1}):
        with pytest.raises(InputError):
            self_test(**wrong)
