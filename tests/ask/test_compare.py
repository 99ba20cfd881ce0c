"""Two runs compared, from directories to an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.ask.runs_made import measured
from tests.measure.peers import samples

from servewise.answer import Answer
from servewise.ask.compare import compare
from servewise.caveats import Caveat
from servewise.cli.main import servewise
from servewise.errors import InputError


def row(answer: Answer, metric: str, condition: str | None = None) -> dict[str, Any]:
    """The row of ``metric``."""
    rows = [each for each in answer.result["rows"] if each["metric"] == metric]
    return next(each for each in rows if condition is None or each["condition"] == condition)


def codes(answer: Answer) -> list[str]:
    """The caveats' codes."""
    return [each.code for each in answer.caveats]


def test_the_same_requests_are_compared_one_by_one(tmp_path: Path) -> None:
    """A server that is 1.2 times as slow: TPOT and TTFT are worse by 1.2, throughput by 1 / 1.2, beyond doubt."""
    a, b = measured(tmp_path / "a"), measured(tmp_path / "b", tpot_s=0.012, noise=1)
    answer = compare(a, b)
    for metric, ratio in (("tpot_p50", 1.2), ("ttft_mean", 1.2), ("output_tokens_per_s", 1 / 1.2)):
        found = row(answer, metric)
        assert found["ratio"] == pytest.approx(ratio, rel=0.03)
        assert found["ci95"][0] <= ratio <= found["ci95"][1]
        assert (found["paired"], found["verdict"]) == (True, "worse")
    assert answer.result["conditions"][0]["pairs"] > 200
    assert codes(answer) == []


def test_a_run_against_itself_is_the_same(tmp_path: Path) -> None:
    """Every metric is the same, whatever its interval."""
    a = measured(tmp_path / "a")
    assert {each["verdict"] for each in compare(a, a).result["rows"]} == {"same"}


def test_other_requests_are_compared_as_independent_runs(tmp_path: Path) -> None:
    """Two seeds: no pairs, the reason stands beside, and a clear difference is still seen."""
    answer = compare(measured(tmp_path / "a"), measured(tmp_path / "b", seed=2, tpot_s=0.02, noise=1))
    condition = answer.result["conditions"][0]
    assert (condition["paired"], condition["why_not_paired"]) == (False, "their seeds differ (1 and 2)")
    assert (row(answer, "tpot_p50")["paired"], row(answer, "tpot_p50")["verdict"]) == (False, "worse")


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("hardware", "2 x test card"),
        ("precision", "int4"),
        ("lengths", "1 in, 1 out"),
        ("model", "other"),
        ("model", None),
        ("load", "9"),
    ],
)
def test_each_condition_that_differs_is_a_caveat(tmp_path: Path, changed: str, value: str | None) -> None:
    """Hardware, precision, lengths, model or load that differ, or are not stated, are named with both values."""
    answer = compare(measured(tmp_path / "a"), measured(tmp_path / "b", conditions={changed: value}))
    caveat = next(each for each in answer.caveats if each.code == "conditions-differ")
    assert caveat.message.startswith(f"{changed} differs (A: ")
    assert f"B: {value or 'not stated'})" in caveat.message
    assert answer.result["differences"][0]["condition"] == changed
    assert "confounded" not in codes(answer)


def test_several_differences_at_once_say_that_no_ratio_belongs_to_one(tmp_path: Path) -> None:
    """Hardware and precision both differ: apples and pears."""
    b = measured(tmp_path / "b", conditions={"hardware": "other", "precision": "int4"})
    assert codes(compare(measured(tmp_path / "a"), b)).count("confounded") == 1


def test_what_differs_in_fact_is_told(tmp_path: Path) -> None:
    """30 of 240 requests failed in B: latencies are of the others, and that is said; as are B's own caveats."""
    own = Caveat("client-saturated", "the client was late", "more workers")
    b = measured(tmp_path / "b", failed=30, caveats=(own,))
    answer = compare(measured(tmp_path / "a"), b)
    assert {"failures-differ", "client-saturated"} <= set(codes(answer))
    assert next(each for each in answer.caveats if each.code == "client-saturated").message.startswith("B: ")


def test_folders_of_runs_are_compared_load_by_load(tmp_path: Path) -> None:
    """1 and 8 streams in both, 4 in A alone: two loads compared, the third named as left out; repeats together."""
    for streams in (1, 4, 8):
        for repeat in (0, 1):
            measured(
                tmp_path / "a" / f"c{streams}" / str(repeat), streams=streams, repeat=repeat, noise=repeat, count=120
            )
            if streams != 4:
                slow = 0.02 if streams == 8 else 0.01
                place = tmp_path / "b" / f"concurrency-{streams}-{repeat}"
                measured(place, streams=streams, repeat=repeat, noise=9 + repeat, tpot_s=slow, count=120)
    answer = compare(tmp_path / "a", tmp_path / "b")
    assert [each["condition"] for each in answer.result["conditions"]] == ["1 stream", "8 streams"]
    assert row(answer, "tpot_p50", "1 stream")["ratio"] == pytest.approx(1, rel=0.05)
    assert row(answer, "tpot_p50", "8 streams")["ratio"] == pytest.approx(2, rel=0.05)
    assert row(answer, "tpot_p50", "8 streams")["verdict"] == "worse"
    assert [each.message for each in answer.caveats] == ["only A has 4 streams: not compared"]
    assert answer.conditions.load == "1 stream, 8 streams"


def test_no_load_in_common_is_refused(tmp_path: Path) -> None:
    """Folders whose loads have nothing in common: one clear line with both lists."""
    for side, loads in (("a", (1, 2)), ("b", (3, 4))):
        for streams in loads:
            measured(tmp_path / side / str(streams), streams=streams, count=40)
    with pytest.raises(InputError, match="no load in common"):
        compare(tmp_path / "a", tmp_path / "b")


def test_a_claim_is_judged_by_the_interval(tmp_path: Path) -> None:
    """Twice as fast: 2.0x is reproduced, 3.0x refuted, of TPOT as of throughput."""
    a, b = measured(tmp_path / "a", tpot_s=0.02), measured(tmp_path / "b", tpot_s=0.01, noise=1)
    for metric in ("tpot_p50", "output_tokens_per_s"):
        verdicts = [
            compare(a, b, claim=claim, metric=metric).result["claims"][0]["verdict"] for claim in ("2.0x", "3x")
        ]
        assert verdicts == ["reproduced", "refuted"]


@pytest.mark.parametrize(("gate", "code"), [("tpot_p50>+10%", 1), ("tpot_p50>+30%", 0), ("ttft_p59>1%", 2)])
def test_a_gate_sets_the_exit_code(tmp_path: Path, gate: str, code: int) -> None:
    """B is 20% slower: a gate of 10% fails with 1, of 30% holds with 0, a gate that is none is wrong input with 2."""
    a, b = measured(tmp_path / "a", count=60), measured(tmp_path / "b", tpot_s=0.012, count=60)
    done = CliRunner().invoke(servewise, ["compare", str(a), str(b), "--fail-if", gate, "--json"])
    assert done.exit_code == code, done.output
    if code == 1:
        assert "the gate does not hold: tpot_p50 > +10% (+2" in done.stderr


def test_another_clients_result_is_compared_too(tmp_path: Path) -> None:
    """vLLM's requests beside the same in AIPerf's file: the same TTFT and TPOT, and what each gets wrong."""
    a = samples.written(tmp_path / "vllm.json", samples.vllm())
    b = samples.written(tmp_path / "aiperf.jsonl", *samples.aiperf())
    answer = compare(a, b)
    for metric in ("ttft_p50", "tpot_p50", "itl_p50"):
        assert row(answer, metric)["ratio"] == pytest.approx(1.0)
        assert (row(answer, metric)["paired"], row(answer, metric)["verdict"]) == (True, "same")
    assert {"peer-clock", "peer-success", "peer-itl", "conditions-differ"} <= set(codes(answer))


def test_a_summary_is_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    """A file without requests: the metrics that it says, without intervals, and why they are not paired."""
    a = samples.written(tmp_path / "a.json", samples.vllm(detailed=False))
    b = samples.written(tmp_path / "b.json", samples.vllm())
    answer = compare(a, b)
    found = row(answer, "ttft_p50")
    assert (found["ratio"], found["ci95"], found["verdict"]) == (pytest.approx(1.0), None, "unclear")
    assert not any(each["metric"] == "ttft_p95" for each in answer.result["rows"])
    assert answer.result["conditions"][0]["why_not_paired"] == "a result that keeps no requests"


def test_a_gap_that_a_client_does_not_keep_is_not_compared(tmp_path: Path) -> None:
    """GuideLLM keeps the first and the last token's time: TPOT is compared, ITL is not."""
    a = samples.written(tmp_path / "a.json", samples.guidellm())
    b = samples.written(tmp_path / "b.json", samples.vllm())
    metrics = {each["metric"] for each in compare(a, b).result["rows"]}
    assert "tpot_p50" in metrics
    assert "itl_p50" not in metrics


def test_caveats_beside_the_runs_are_told_with_whose_they_are(tmp_path: Path) -> None:
    """What bench found of B (a client that was late) stands in its answer beside the runs: compare says it too."""
    a, b = measured(tmp_path / "a", count=60), measured(tmp_path / "b" / "concurrency-4", count=60)
    caveat = {"code": "client-saturated", "message": "the client was late", "cure": "more workers"}
    (tmp_path / "b" / "bench.json").write_text(json.dumps({"caveats": [caveat]}), "utf-8")
    found = next(each for each in compare(a, b.parent).caveats if each.code == "client-saturated")
    assert found.message == "B: the client was late"
    (tmp_path / "b" / "bench.json").write_text('{"caveats": [7]}', "utf-8")
    with pytest.raises(InputError, match=r"bench\.json"):
        compare(a, b.parent)


@pytest.mark.parametrize("place", ["nowhere", "empty"])
def test_places_without_a_run_are_one_line(tmp_path: Path, place: str) -> None:
    """A path that is not there, and a folder without a run, are refused with what a run is."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="run"):
        compare(tmp_path / place, measured(tmp_path / "a", count=40))


@pytest.mark.parametrize("options", [{"metric": "tpot_p50"}, {"tolerance": 0.2}])
def test_what_is_about_a_claim_needs_one(tmp_path: Path, options: dict[str, Any]) -> None:
    """A metric or tolerance without a claim would be ignored: refused, with the option that is missing."""
    run = measured(tmp_path / "run", count=20)
    with pytest.raises(InputError, match="--claim"):
        compare(run, run, **options)
