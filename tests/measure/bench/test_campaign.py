"""Runs and campaigns in virtual time, where the truth is exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.measure.bench.virtual import VirtualServer
from tests.records.made import CONDITIONS

from servewise.errors import RunFailed
from servewise.measure.ask import Ask
from servewise.measure.bench.campaign import Campaign
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.measured import Measured
from servewise.measure.bench.one_run import RunWanted, measure
from servewise.measure.drive.terms import Terms
from servewise.measure.load.fixed import one_by_one
from servewise.measure.load.retry import RetryRule, RetrySchedule
from servewise.measure.outcome import Outcome
from servewise.metrics.slo import parse_slo
from servewise.records.columns import RequestColumns
from servewise.records.run_directory import RunRecord, read_run

RECORD = RunRecord(kind="measured", conditions=CONDITIONS, requests=RequestColumns())


def asks(count: int) -> list[Ask]:
    """Asks of 100 tokens for 5."""
    return [Ask(serial=each, body=b"{}", output_tokens=5, prompt_tokens=100) for each in range(count)]


def closed(streams: int) -> Condition:
    """A closed loop."""
    return Condition(kind="concurrency", value=streams)


def run(server: VirtualServer, streams: int = 4, count: int = 40, **more: Any) -> Measured:
    """One run of a closed loop."""
    wanted = RunWanted(condition=closed(streams), schedule=one_by_one(asks(count), streams), record=RECORD, **more)
    return measure(wanted, server)


def test_a_run_of_exact_service_has_its_closed_form() -> None:
    """4 streams of 0.25 + 4 x 0.125 = 0.75 s: 4 / 0.75 requests/s, TTFT 0.25 s, TPOT 0.125 s, N = X R."""
    found = run(VirtualServer())
    summary = found.summary

    assert summary.requests_per_s == pytest.approx(4 / 0.75)
    assert (summary.ttft.p99, summary.tpot.p99, summary.e2e.p50) == (0.25, 0.125, 0.75)
    assert summary.requests_per_s * summary.e2e.mean == pytest.approx(4)
    assert found.ended == "whole"


def test_more_streams_than_slots_saturate_at_the_slots() -> None:
    """8 streams over 2 slots: the throughput of 2, and R = N / X = 3 s (the interactive response time law)."""
    found = run(VirtualServer(slots=2), streams=8, count=160)

    assert found.summary.requests_per_s == pytest.approx(2 / 0.75, rel=0.02)
    assert found.summary.e2e.mean == pytest.approx(8 * 0.75 / 2, rel=0.02)


def test_warm_ups_are_outside_the_record() -> None:
    """What is sent first reaches the server and no figure."""
    server = VirtualServer()
    found = run(server, count=20, first=(one_by_one(asks(6), 2),))

    assert len(server.asks) == 26
    assert len(found.tally.records.columns) == 20


def test_a_warm_up_that_always_fails_ends_it_before_the_run() -> None:
    """Not one completed: one line that says why, and no run directory."""
    server = VirtualServer(outcome_of=lambda _: Outcome.SERVER_ERROR)

    with pytest.raises(RunFailed, match="server-error: made up"):
        run(server, first=(one_by_one(asks(3)),))


def test_a_run_is_kept_with_what_was_seen(tmp_path: Path) -> None:
    """The directory holds every request, the window, the client and the outcomes."""
    found = run(VirtualServer(), directory=tmp_path / "run", details={"salt": 7})
    back = read_run(tmp_path / "run")

    assert len(back.requests) == 40
    assert back.details["salt"] == 7
    assert back.details["concurrency"] == 4
    assert back.details["outcomes"] == {"completed": 40}
    assert back.details["window"]["start_s"] == found.window.start_s
    assert back.caveats == ()


def test_an_interrupt_keeps_what_had_ended(tmp_path: Path) -> None:
    """Ctrl-C after 25 ends: 25 rows, marked partial, in the directory and in what is returned."""

    def interrupt(ended: int) -> None:
        if ended == 25:
            raise KeyboardInterrupt

    found = run(VirtualServer(after=interrupt), directory=tmp_path / "run")
    back = read_run(tmp_path / "run")

    assert found.ended == "interrupted"
    assert len(found.tally.records.columns) == len(back.requests) == 25
    assert [each.code for each in back.caveats] == ["partial-run"]


def test_a_server_that_only_fails_ends_the_run_early() -> None:
    """After a hundred failures without a success nothing more is sent; the reason has an example."""
    server = VirtualServer(outcome_of=lambda _: Outcome.SERVER_ERROR)
    found = run(server, count=5_000)

    assert found.ended == "server"
    assert "server-error: made up" in found.reason
    assert 100 <= len(server.asks) < 120
    assert found.summary.completed == 0


def test_failures_among_successes_are_counted_and_enter_nothing() -> None:
    """Every fifth fails: counts add up, latencies are of the others."""
    server = VirtualServer(outcome_of=lambda ask: Outcome.RESET if ask.serial % 5 == 0 else Outcome.COMPLETED)
    found = run(server, count=100)

    assert (found.tally.completed, found.tally.failed) == (80, 20)
    assert found.tally.outcomes()[1] == {"outcome": "reset", "count": 20, "example": "reset: made up"}
    assert found.summary.ttft.p99 == pytest.approx(0.25)


def test_a_429_that_is_repeated_is_no_row_of_its_own() -> None:
    """The first attempt of every request is limited: one row for each request, the attempts counted beside."""
    seen: set[int] = set()

    def limited(ask: Ask) -> Outcome:
        first = ask.serial not in seen
        seen.add(ask.serial)
        return Outcome.RATE_LIMITED if first else Outcome.COMPLETED

    rule = RetryRule(first_s=0.01)
    schedule = RetrySchedule(one_by_one(asks(30), 3), rule)
    wanted = RunWanted(condition=closed(3), schedule=schedule, retries=rule)
    found = measure(wanted, VirtualServer(outcome_of=limited))

    assert (found.tally.completed, found.tally.failed, found.tally.repeated) == (30, 0, 30)
    assert found.summary.e2e.p50 > 0.75


def test_a_429_whose_repeat_never_left_is_an_outcome_of_the_run() -> None:
    """The run is over before the repeats are due: each request that was sent is a row, and the attempts add up."""
    rule = RetryRule(first_s=50.0, seed=3)
    server = VirtualServer(outcome_of=lambda ask: Outcome.RATE_LIMITED if ask.serial % 2 else Outcome.COMPLETED)
    schedule = RetrySchedule(one_by_one(asks(400), 4), rule)
    wanted = RunWanted(condition=closed(4), schedule=schedule, retries=rule, terms=Terms(until_s=20.0))
    found = measure(wanted, server)

    rows = found.tally.records.columns
    assert found.tally.failed > 0
    assert sorted(rows.id) == sorted({each.serial for each in server.asks})
    assert len(rows) + found.tally.repeated == len(server.asks)


def test_a_disk_that_fills_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tenth row cannot be written: nothing more is sent, nine are kept, the line says why."""
    from servewise.records.journal import Journal

    real = Journal.append

    def append(journal: Journal, requests: RequestColumns, row: int) -> None:
        if row == 9:
            raise OSError(28, "No space left on device")
        real(journal, requests, row)

    monkeypatch.setattr(Journal, "append", append)
    server = VirtualServer()
    found = run(server, count=500, directory=tmp_path / "run")

    assert found.ended == "disk"
    assert "No space left on device" in found.reason
    assert len(server.asks) < 20
    assert len(read_run(tmp_path / "run").requests) == 9


class TestCampaign:
    """Conditions, repeats and the search."""

    def campaign(self, server: VirtualServer) -> Campaign:
        """Closed loops of 30 requests."""
        return Campaign(lambda condition, repeat: run(server, int(condition.value), 30 * int(condition.value)))

    def test_every_condition_is_repeated_in_blocks(self) -> None:
        """Three conditions, four repeats: each block of three runs has each condition once."""
        campaign = self.campaign(VirtualServer())
        campaign.repeat([closed(1), closed(2), closed(4)], 4, seed=3)
        order = [each.condition.value for each in campaign.runs]

        assert len(order) == 12
        assert all(sorted(order[at : at + 3]) == [1, 2, 4] for at in range(0, 12, 3))

    def test_an_exact_server_needs_three_repeats_for_any_interval(self) -> None:
        """Without noise the intervals are points: three repeats are enough for 1%."""
        campaign = self.campaign(VirtualServer())
        campaign.repeat([closed(2)], 1, seed=0, within=0.01)

        assert len(campaign.runs) == 3

    def test_the_search_finds_the_slots(self) -> None:
        """6 slots: up to 6 streams TTFT is 0.25 s, from 7 on some wait a whole service: the knee is 6 to 7."""
        campaign = self.campaign(VirtualServer(slots=6))
        knee = campaign.search("concurrency", 1, parse_slo("ttft_p99<=0.3s"), repeats=2)

        assert (knee.best, knee.low, knee.high) == (6, 6, 7)
        assert all(each.repeats == 2 for each in knee.tries)

    def test_an_interrupt_keeps_the_runs_before_it(self) -> None:
        """The third run is cut off: three runs, the last partial, and no fourth."""

        def interrupt(ended: int) -> None:
            if ended == 70:
                raise KeyboardInterrupt

        campaign = self.campaign(VirtualServer(after=interrupt))
        campaign.repeat([closed(1)], 10, seed=0)

        assert [each.ended for each in campaign.runs] == ["whole", "whole", "interrupted"]
        assert campaign.ended == "interrupted"

    def test_a_server_that_dies_between_runs_keeps_those_before(self) -> None:
        """A later warm-up that fails ends the measurement with what there is; a first one raises."""
        done: list[int] = []

        def run_one(condition: Condition, repeat: int) -> Measured:
            if len(done) == 2:
                raise RunFailed("no warm-up request completed (refused)")
            done.append(repeat)
            return run(VirtualServer(), 1, 20)

        campaign = Campaign(run_one)
        campaign.repeat([closed(1)], 5, seed=0)
        assert (len(campaign.runs), campaign.ended) == (2, "server")
        assert "refused" in campaign.reason

        with pytest.raises(RunFailed):
            Campaign(run_one).repeat([closed(1)], 5, seed=0)
