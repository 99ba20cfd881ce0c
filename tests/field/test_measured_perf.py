"""Published rates of real engines: the bar on decode with one sequence, and every measurement far off explained."""

from __future__ import annotations

import json

import pytest
from benchmarks.accuracy.measured_perf.__main__ import BAR, NAMES, result, summary
from benchmarks.accuracy.measured_perf.data import DATA, rows
from benchmarks.accuracy.measured_perf.judge import Judged, fitted, judged
from benchmarks.accuracy.measured_perf.mixtures import steps
from benchmarks.accuracy.measured_perf.names import model, stored
from benchmarks.accuracy.measured_perf.outliers import cause, is_outlier
from benchmarks.record import RESULTS

from servewise.modelspec.weights import weight_bytes


@pytest.fixture(scope="module")
def found() -> list[Judged]:
    """Every figure with a prediction."""
    return judged()[0]


def _phase(found: list[Judged], name: str, engine: str = "") -> list[Judged]:
    return [each for each in found if each.case.group == name and engine in each.case.engine and not fitted(each.case)]


def test_decode_of_one_sequence_meets_the_bar(found: list[Judged]) -> None:
    """Over 300 published rates of six engines on nineteen accelerators, in no fit: 10% in the middle."""
    one = _phase(found, "decode, one sequence")

    assert len(one) > 300
    assert summary(one)["median"] <= BAR


@pytest.mark.parametrize(
    ("engine", "middle"), [("llama.cpp", 0.10), ("exllama", 0.12), ("gpt-fast", 0.12), ("vllm", 0.12)]
)
def test_each_engine_is_near(found: list[Judged], engine: str, middle: float) -> None:
    """No engine's rates are carried by another's."""
    assert summary(_phase(found, "decode, one sequence", engine))["median"] <= middle


def test_whole_static_batches(found: list[Judged]) -> None:
    """TensorRT-LLM's static batches, prompts and all steps: 10% in the middle."""
    assert summary(_phase(found, "whole batch, batches"))["median"] <= 0.10


def test_servers_with_routed_experts() -> None:
    """DeepSeek-R1 on eight H200 within 10% in the middle; all servers with routed experts within 20%."""
    errors = sorted(each.error for each in steps())
    deepseek = sorted(each.error for each in steps() if "8 x h200" in each.name)

    assert deepseek[len(deepseek) // 2] <= 0.10
    assert errors[len(errors) // 2] <= 0.20


def test_every_outlier_has_its_cause_on_file(found: list[Judged]) -> None:
    """What lies beyond 1.5 times its prediction is explained, one by one or by group."""
    assert not [each.case.row.number for each in found if is_outlier(each) and not cause(each)]


def test_no_decode_beats_the_floor_but_one(found: list[Judged]) -> None:
    """A published rate above what the memory allows is a mistake: of ours or of the source; one is known."""
    beaten = [each for each in found if each.case.phase == "decode" and each.case.seconds < each.floor_s]

    assert len(beaten) == 1
    assert "below the floor" in (cause(beaten[0]) or "")


def test_every_figure_is_predicted_or_left_out_for_a_reason() -> None:
    """1,103 published figures: none is lost."""
    kept, reasons = judged()

    assert len(kept) + reasons.total() == len(list(rows())) == 1103


def test_a_quantised_file_has_its_published_size() -> None:
    """Llama 3 8B in Q4_K_M is 4.58 GiB, 70B 39.59 GiB (llama.cpp's model tables): the traffic is the file's."""
    for name, gib in {"Llama-3-8B": 4.58, "Llama-3-70B": 39.59}.items():
        spec = model(name)
        assert spec is not None
        kept = stored(spec, "Q4_K_M", "llama.cpp")
        assert kept is not None
        assert weight_bytes(kept) / 2**30 == pytest.approx(gib, rel=0.01)


def test_the_committed_table_is_what_the_command_prints() -> None:
    """A change of predictions shows in benchmarks/results/measured_perf.json: run the command again."""
    committed = json.loads((RESULTS / "measured_perf.json").read_text("utf-8"))
    again = result()

    assert again["left_out"] == committed["left_out"]
    for phase, each in again["phases"].items():
        assert {name: each[name] for name in NAMES} == pytest.approx(committed["phases"][phase], rel=5e-3)


def test_sources_are_all_named() -> None:
    """Every figure's source has its address."""
    known = {line.split(",")[0] for line in (DATA / "sources.csv").read_text("utf-8").splitlines()}

    assert {row.source for row in rows()} <= known
