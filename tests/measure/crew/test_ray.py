"""The load of a Ray cluster: two nodes of one machine send, and one of them is lost in mid-run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock

pytest.importorskip("ray")

CLUSTER = Path(__file__).with_name("ray_cluster.py")
PATIENCE_S = 240.0  # a node of Ray takes seconds to start, and much longer on a machine that is busy
RATE_PER_S, SECONDS, LOST_AFTER = 20, 8, 60  # requests seen by the server, of 160: the run is well under way


@contextmanager
def cluster() -> Iterator[subprocess.Popen[str]]:
    """A cluster of two nodes on loopback, whose address was said."""
    process = subprocess.Popen(
        [sys.executable, str(CLUSTER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait(PATIENCE_S)
        process.stdout.close()


def said(process: subprocess.Popen[str]) -> str:
    """The next line that it says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def lose_a_node(process: subprocess.Popen[str], server: RunningMock, bench: subprocess.Popen[bytes]) -> None:
    """Once the server has seen so many requests with the run's mark, take a node's power."""
    until_s = time.monotonic() + PATIENCE_S
    while len([each for each in server.log().requests if each.tokens == 4]) < LOST_AFTER:
        assert time.monotonic() < until_s
        assert bench.poll() is None
        time.sleep(0.2)
    assert process.stdin is not None
    process.stdin.write("lose\n")
    process.stdin.flush()
    assert said(process) == "lost"


@pytest.mark.slow
def test_two_nodes_send_and_one_is_lost(tmp_path: Path) -> None:
    """Both are one machine, whose clock is one: offsets are 0 within their bounds. The loss is told, and all add up."""
    with cluster() as process, running_mock(MockPlan(first_s=(0.3, 0.4), gap_s=0.02)) as server:
        address = said(process)
        words = ["bench", server.url, "--model", "mock", "--hardware", "stand-in", "--precision", "none", "--json"]
        load = ["--rate", str(RATE_PER_S), "--duration", f"{SECONDS}s", "--repeats", "1", "--input-tokens", "16"]
        more = ["--output-tokens", "4", "--executor", address, "--run-dir", str(tmp_path / "run")]
        bench = subprocess.Popen(
            [sys.executable, "-m", "servewise", *words, *load, *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"},  # as the cluster: loopback alone
        )
        lose_a_node(process, server, bench)
        out, _ = bench.communicate(timeout=PATIENCE_S)
    answer = json.loads(out)
    (row,) = answer["result"]["rows"]
    counts = {each["outcome"]: each["count"] for each in row["outcomes"]}
    check_hosts(row["hosts"], counts)
    assert row["requests"] + row["cancelled"] == sum(counts.values())
    assert "sender-lost" in {each["code"] for each in answer["caveats"]}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["details"]["client"]["hosts"] == row["hosts"]


def check_hosts(hosts: list[dict[str, Any]], counts: dict[str, int]) -> None:
    """Each host's part, against what is known of a single machine and against the outcomes."""
    assert len(hosts) == 2
    for each in hosts:
        assert abs(each["offset_s"]) <= each["offset_bound_s"]
        assert each["requests"] == each["completed"] + each["lost"]
    (lost,) = [each for each in hosts if each["end"]]
    (left,) = [each for each in hosts if not each["end"]]
    assert lost["drift_s"] is None
    assert abs(left["drift_s"]) <= left["drift_bound_s"]
    assert counts.get("lost", 0) == lost["lost"]
    assert counts["completed"] == lost["completed"] + left["completed"]
    assert left["completed"] > lost["completed"]
