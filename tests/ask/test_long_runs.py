"""Runs that leave memory as they go give the document, and the directory, of the same runs in memory."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.records.test_run_directory import assert_equal

from servewise.ask import long_runs, runs
from servewise.ask.run import run_answer
from servewise.ask.simulate import simulate
from servewise.ask.telling import Teller, told
from servewise.errors import InputError
from servewise.records.run_directory import read_run
from servewise.workload.load import load_workload

ASKED: dict[str, Any] = {"rate": 12.0, "policy": "vllm", "slo": "ttft_p95<=1s, tpot_p95<=50ms", "kv_blocks": 9_000}


def _document(run_dir: Path, **asked: Any) -> str:
    answer = simulate("llama-3.1-8b", "h100-sxm", run_dir=run_dir, **ASKED | asked)
    return json.dumps(answer.to_json(), sort_keys=True)


def _both_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **asked: Any) -> None:
    in_memory = _document(tmp_path / "memory", **asked)
    monkeypatch.setattr(long_runs, "LONG", 1)
    assert _document(tmp_path / "long", **asked) == in_memory
    kept, grown = (read_run(tmp_path / name) for name in ("memory", "long"))
    assert_equal(kept.requests, grown.requests)
    assert (kept.steps, kept.slots, kept.details) == (grown.steps, grown.slots, grown.details)


def test_a_trace_with_its_slow_and_fast_clocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A trace under a pool so small that some are preempted: equal to the last digit, run directory included."""
    _both_ways(monkeypatch, tmp_path, workload="azure-conv", requests=4_000)


def test_a_synthetic_workload_over_seeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two seeds of requests that share prefixes, some beyond the context: equal to the last digit."""
    _both_ways(monkeypatch, tmp_path, workload="rag", requests=1_500, rate=2.0, seeds=2, max_context=6_000)


def test_a_closed_loop_stays_in_memory() -> None:
    """Its arrivals hang on its answers, so that its requests do not come in order of their numbers."""
    assert not long_runs.is_long(load_workload("chat-multiturn"), 10**9)
    assert long_runs.is_long(load_workload("azure-conv"), 10**9)
    assert not long_runs.is_long(load_workload("azure-conv"), 1_000)


def test_progress_is_the_sum_of_what_is_told() -> None:
    """Two runs tell 300 and 40 of 1,000 in all; at the end all are done. A teller without a folder is silent."""
    seen: list[tuple[int, int]] = []
    with told(lambda done, total: seen.append((done, total)), 1_000) as folder:
        Teller(folder, "a")(300)
        Teller(folder, "b")(40)
        until_s = time.monotonic() + 60
        while (340, 1_000) not in seen and time.monotonic() < until_s:
            time.sleep(0.01)
    assert seen[-1] == (1_000, 1_000)
    assert (340, 1_000) in seen
    Teller(None, "c")(5)
    with told(None, 10) as nowhere:
        assert nowhere is None


@pytest.mark.parametrize("workload", ["azure-conv", "chat-multiturn"])
def test_a_long_runs_directory_is_reported_a_part_at_a_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workload: str
) -> None:
    """The answer is that of the rows read at once; conversations, whose numbers are in another order, are so read."""
    asked: dict[str, Any] = {"workload": workload, "requests": 1_500, "rate": 3.0, "estimator": "ideal", "seeds": 1}
    simulate("llama-3.1-8b", "h100-sxm", run_dir=tmp_path / "run", **asked)
    at_once = json.dumps(run_answer(tmp_path / "run").to_json(), sort_keys=True)
    monkeypatch.setattr(runs, "LONG_BYTES", 1)
    assert json.dumps(run_answer(tmp_path / "run").to_json(), sort_keys=True) == at_once
    told = runs.conditions_in(tmp_path / "run", figures_only=True)[0].runs[0].told
    assert (told is not None) is (workload == "azure-conv")


def test_a_damaged_long_run_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A byte turned in its steps: one line, before anything of the file is parsed."""
    simulate("llama-3.1-8b", "h100-sxm", run_dir=tmp_path, workload="azure-conv", requests=200, estimator="ideal")
    data = bytearray((tmp_path / "steps.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "steps.parquet").write_bytes(data)
    monkeypatch.setattr(runs, "LONG_BYTES", 1)
    with pytest.raises(InputError, match="damaged or truncated"):
        run_answer(tmp_path)
