"""A long fleet run, whole or cut over processes, gives the document and the directory of the same run in memory."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.records.test_run_directory import assert_equal

from servewise.ask import long_runs
from servewise.ask.fleet import fleet
from servewise.executing import executor
from servewise.records.run_directory import read_run

ASKED: dict[str, Any] = {
    "workload": "azure-conv",
    "requests": 2_500,
    "rate": 40.0,
    "replicas": 3,
    "policy": "vllm",
    "slo": "ttft_p95<=1s, tpot_p95<=50ms",
    "estimator": "ideal",
    "max_context": 8_192,
}


def _document(**asked: Any) -> str:
    return json.dumps(fleet("llama-3.1-8b", "h100-sxm", **ASKED | asked).to_json(), sort_keys=True)


def test_in_memory_on_disk_and_in_portions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Requests beyond the context, replicas of two kinds and weights: three ways to one document, one directory."""
    asked = {"also": "1:a100-80gb@0.5"}
    in_memory = _document(run_dir=tmp_path / "memory", **asked)
    monkeypatch.setattr(long_runs, "LONG", 1)
    monkeypatch.setattr(executor, "SMALL", 1)  # processes are started for as few
    assert _document(run_dir=tmp_path / "disk", **asked) == in_memory
    assert _document(run_dir=tmp_path / "portions", processes=2, **asked) == in_memory
    kept, *others = (read_run(tmp_path / name) for name in ("memory", "disk", "portions"))
    for other in others:
        assert_equal(kept.requests, other.requests)
        assert (kept.steps, kept.slots, kept.details) == (other.steps, other.slots, other.details)


def test_random_routing_over_seeds_and_autoscaling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded draws come out alike in every portion; a fleet that grows runs whole, and its counts are the same."""
    drawn = {"router": "random", "seeds": 2}
    grows = {"autoscale": "load=0.7,min=1,max=4,every=5s,start=20s,settle=30s", "fail": "r0@20s:40s"}
    in_memory = [_document(**drawn), _document(**grows)]
    monkeypatch.setattr(long_runs, "LONG", 1)
    assert [_document(processes=2, **drawn), _document(**grows)] == in_memory


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"router": "least-loaded"}, "its router looks at what the replicas do"),
        ({"policy": "static"}, "static batches wait"),
        ({"fail": "r0@20s:40s"}, "failures, autoscaling and lockstep tie"),
    ],
)
def test_what_cannot_be_cut_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, asked: dict[str, Any], why: str
) -> None:
    """Where it would not be exact the run is whole, one line says why, and the document is the same."""
    few = {"requests": 400} | asked
    in_memory = _document(**few)
    monkeypatch.setattr(long_runs, "LONG", 1)
    with caplog.at_level(logging.WARNING):
        assert _document(processes=2, **few) == in_memory
    lines = [each.getMessage() for each in caplog.records]
    assert len(lines) == 1
    assert why in lines[0]
    assert "one process" in lines[0]
