"""Simulated answers against the study and against queueing theory, with intervals that mean what they say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.ask.made import STUDY, chat, equal

from servewise.ask.deploying import Options
from servewise.ask.run import run_answer
from servewise.ask.runs import load_key
from servewise.ask.simulate import simulate
from servewise.errors import InputError, UnknownName
from servewise.executing import executor
from servewise.records.run_directory import read_run
from servewise.workload.lengths import Fixed
from servewise.workload.synthetic import ClosedLoop

KEYS = {
    "policy",
    "rate_per_s",
    "ttft_s",
    "tpot_s",
    "itl_s",
    "e2e_s",
    "utilisation",
    "output_tokens_per_s",
    "goodput_per_s",
    "completed",
    "rejected",
    "preemptions",
}


def test_rows_are_policies_times_rates_with_contracts_keys() -> None:
    """Two policies at two rates are four rows, in that order, each with CONTRACT's keys."""
    answer = simulate(
        "llama-2-13b", workload=chat(60), policy=["static", "continuous"], rate=[1, 2], slo="e2e_p95<=30s", **STUDY
    )
    rows = answer.result["rows"]

    assert [(row["policy"], row["rate_per_s"]) for row in rows] == [
        ("static", 1.0),
        ("static", 2.0),
        ("continuous", 1.0),
        ("continuous", 2.0),
    ]
    assert all(set(row) >= KEYS for row in rows)
    assert set(rows[0]["ttft_s"]) >= {"mean", "p50", "p90", "p95", "p99", "ci95_p50", "n"}
    json.loads(answer.dumps())


def test_unit_steps_saturate_where_the_slots_do() -> None:
    """The study's clock: 8 slots and answers of exactly 50 steps complete 8 / 50 a step, whatever the policy."""
    answer = simulate(
        "llama-2-13b",
        workload=equal(400, 1, 50),
        policy=["static", "continuous"],
        rate=0.05,
        slots=8,
        reserve=True,
        unit_step=True,
        seeds=1,
        **STUDY,
    )

    for knee in answer.result["knees"]:
        assert (knee["low_per_s"] + knee["high_per_s"]) / 2 == pytest.approx(8 / 50, rel=0.02)
    assert answer.result["unit_step"] is True


def test_a_lone_request_takes_its_steps() -> None:
    """At next to no load an answer of 50 unit steps takes 50: one for the prompt, 49 to decode."""
    (row,) = simulate(
        "llama-2-13b", workload=equal(50, 1, 50), rate=1e-4, slots=8, unit_step=True, seeds=1, **STUDY
    ).result["rows"]

    assert row["ttft_s"]["p95"] == pytest.approx(1.0)
    assert row["e2e_s"]["p95"] == pytest.approx(50.0)
    assert row["tpot_s"]["mean"] == pytest.approx(1.0)


def test_one_server_is_md1() -> None:
    """One slot, steps of 1 s, answers of one step (M/D/1): mean wait rho / (2 (1 - rho)) + 1, within the interval.

    Pollaczek-Khinchine at rho = 0.5: TTFT is 1.5 s. Five seeds of 4,000 requests; 99.9% of such intervals hold it.
    """
    (row,) = simulate(
        "llama-2-13b", workload=equal(4000, 1, 1), rate=0.5, slots=1, unit_step=True, seeds=5, **STUDY
    ).result["rows"]
    low, high = row["ttft_s"]["ci95_mean"]

    assert low - (high - low) <= 1.5 <= high + (high - low)
    assert row["ttft_s"]["mean"] == pytest.approx(1.5, rel=0.05)


def test_more_seeds_narrow_the_interval() -> None:
    """The interval of a mean over seeds falls with their number where the clock has no spread."""
    widths = []
    for seeds in (3, 24):
        (row,) = simulate("llama-2-13b", workload=chat(60), rate=2, seeds=seeds, **STUDY).result["rows"]
        low, high = row["e2e_s"]["ci95_mean"]
        widths.append(high - low)

    assert widths[1] < widths[0]


def test_coefficients_widen_what_seeds_cannot() -> None:
    """With calibrated times the interval holds the coefficients' spread: some percent however many seeds there are."""
    (row,) = simulate("llama-3.1-8b", "h100-sxm", workload=chat(150), rate=1, seeds=4).result["rows"]
    low, high = row["tpot_s"]["ci95_p50"]

    assert low < row["tpot_s"]["p50"] < high
    assert (high - low) / row["tpot_s"]["p50"] > 0.05


def test_above_saturation_the_answer_says_so() -> None:
    """At ten times what the server completes, the row is not stable and a caveat names the knee."""
    answer = simulate("llama-2-13b", workload=chat(400), rate=[0.2, 60], seeds=2, **STUDY)
    low, high = answer.result["rows"]
    (caveat,) = (each for each in answer.caveats if each.code == "unstable")

    assert low["stable"] is True
    assert high["stable"] is False
    assert "p95 grows with the length of the run" in caveat.message
    assert f"unstable above {answer.result['knees'][0]['low_per_s']:.3g}" in caveat.message


def test_processes_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process or two: the same document."""
    monkeypatch.setattr(executor, "SMALL", 0)
    one, two = (
        simulate("llama-2-13b", workload=chat(60), rate=[1, 2], seeds=2, processes=processes, **STUDY).dumps()
        for processes in (1, 2)
    )

    assert one == two


def test_requests_beyond_the_context_are_counted_as_refused() -> None:
    """Llama 2 takes 4,096 tokens: requests of 5,000 are rejected, none vanishes, and a caveat says how many."""
    with pytest.raises(InputError, match="no request that the model's context holds"):
        simulate("llama-2-13b", workload=equal(10, 5000, 10), **STUDY)
    short: Options = {**STUDY, "max_context": 400}
    answer = simulate("llama-2-13b", workload=chat(300), rate=1, seeds=1, **short)
    (row,) = answer.result["rows"]

    assert row["rejected"] > 0
    assert row["completed"] + row["rejected"] == 300
    assert "beyond-context" in {each.code for each in answer.caveats}


def test_goodput_counts_what_meets_the_slo() -> None:
    """An SLO that all meet gives the rate of completions, one that none meets gives none."""
    rows = [
        simulate("llama-2-13b", workload=chat(100), rate=1, seeds=1, slo=slo, **STUDY).result["rows"][0]
        for slo in ("e2e_p95<=1000s", "ttft_p95<=1us")
    ]

    assert rows[0]["goodput_per_s"] == pytest.approx(rows[0]["requests_per_s"])
    assert rows[1]["goodput_per_s"] == 0


def test_a_closed_loop_has_users_and_no_rate() -> None:
    """Four users who wait for their answers: concurrency never above four, throughput 4 / latency (Little's law)."""
    loop = ClosedLoop(concurrency=4, think_s=0.0, prompt_lengths=Fixed(100), output_lengths=Fixed(50), requests=400)
    (row,) = simulate("llama-2-13b", workload=loop, seeds=1, **STUDY).result["rows"]

    assert row["requests_per_s"] * row["e2e_s"]["mean"] == pytest.approx(4, rel=0.02)
    with pytest.raises(InputError, match="rate"):
        simulate("llama-2-13b", workload=loop, rate=1, **STUDY)


def test_run_directories_hold_the_runs(tmp_path: Path) -> None:
    """One row is the directory itself, several are folders in it, and read back they give the row's latencies."""
    alone = simulate("llama-2-13b", workload=chat(50), rate=1, seeds=1, run_dir=tmp_path / "one", **STUDY)
    simulate("llama-2-13b", workload=chat(50), rate=[1, 2], seeds=1, run_dir=tmp_path / "two", **STUDY)
    again = run_answer(tmp_path / "one")

    assert sorted(each.name for each in (tmp_path / "two").iterdir()) == ["continuous-1", "continuous-2"]
    for name in ("ttft_s", "tpot_s", "e2e_s", "itl_s"):
        assert again.result["rows"][0][name]["p95"] == pytest.approx(alone.result["rows"][0][name]["p95"])
    assert again.conditions.seeds == (0,)


def test_a_kept_closed_loop_has_its_users_for_a_load(tmp_path: Path) -> None:
    """So it stands beside a measurement at as many streams."""
    loop = ClosedLoop(concurrency=4, think_s=0.0, prompt_lengths=Fixed(100), output_lengths=Fixed(20), requests=40)
    simulate("llama-2-13b", workload=loop, seeds=1, run_dir=tmp_path / "run", **STUDY)
    record = read_run(tmp_path / "run")

    assert load_key(record) == ("concurrency", 4)
    assert record.conditions.load == "4 users in a closed loop"


def test_a_kept_run_says_how_it_speculated(tmp_path: Path) -> None:
    """Two runs that differ in nothing else differ in their conditions."""
    place = tmp_path / "run"
    simulate("llama-2-13b", workload=chat(20), rate=1, run_dir=place, speculate="ngram", acceptance=0.6, **STUDY)

    assert "3 tokens drafted by n-gram" in str(read_run(place).conditions.policy)


def test_a_run_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    """A folder with something in it is refused, and what is in it stays."""
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(InputError, match="not empty"):
        simulate("llama-2-13b", workload=chat(20), rate=1, seeds=1, run_dir=tmp_path, **STUDY)

    assert (tmp_path / "mine").read_text() == "kept"


def test_nothing_fits_nothing_runs() -> None:
    """A model that does not fit cannot be simulated: one line with what is short."""
    with pytest.raises(InputError, match=r"does not fit: .* short"):
        simulate("llama-2-70b", "a100-80gb", workload=chat(10))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"rate": 0}, "rate"),
        ({"rate": math.nan}, "rate"),
        ({"seeds": 0}, "seeds"),
        ({"slots": -1}, "slots"),
        ({"window": 0}, "window"),
        ({"seed": -1}, "seed"),
        ({"slo": "ttft<=1s"}, "slo"),
    ],
)
def test_numbers_without_sense_are_named(options: dict[str, object], line: str) -> None:
    """A rate of zero, no seeds, negative slots, an SLO without a percentile: each is refused by its name."""
    with pytest.raises(InputError, match=line):
        simulate("llama-2-13b", "a100-80gb", workload=chat(10), **options)  # type: ignore[arg-type]


def test_an_unknown_policy_gets_the_known_ones() -> None:
    """A typo in a policy is answered with the nearest."""
    with pytest.raises(UnknownName, match="continuous"):
        simulate("llama-2-13b", "a100-80gb", workload=chat(10), policy="continous")


def test_requests_cut_or_repeat_the_workload() -> None:
    """Ten of fifty requests, or fifty repeated to a hundred: each completes."""
    for wanted in (10, 100):
        (row,) = simulate("llama-2-13b", workload=chat(50), requests=wanted, seeds=1, **STUDY).result["rows"]

        assert row["completed"] == wanted


def test_a_trace_of_one_moment_has_no_rate_of_its_own(tmp_path: Path) -> None:
    """One line that says why, and what to give."""
    trace = tmp_path / "one.jsonl"
    trace.write_text('{"arrival_s": 0, "prompt_tokens": 10, "output_tokens": 5}\n')
    with pytest.raises(InputError, match="one moment"):
        simulate("llama-3.1-8b", "l4", workload=str(trace))
