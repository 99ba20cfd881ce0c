"""``loop`` from end to end against a stand-in server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httptools")

from servewise.ask.bench_options import BenchOptions
from servewise.ask.loop import loop
from servewise.errors import InputError
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import running_mock
from servewise.steptime.calibration_file import load_calibration

DEVICE: dict[str, Any] = {"peak_flops": 1e12, "bandwidth": 1e11, "memory": 30e9}
OPTIONS = BenchOptions(
    model="mock", hardware="a stand-in", precision="none", input_tokens="20-60", output_tokens="6-10", warmup=1
)


@pytest.mark.slow
def test_the_whole_loop(tmp_path: Path) -> None:
    """It measures, calibrates, finds a rate, measures that, and leaves runs, calibration and comparison behind.

    How near the prediction comes is not judged here: a stand-in with a fixed schedule is no batching server.
    """
    told: list[str] = []
    folder = tmp_path / "loop"
    with running_mock(MockPlan(first_s=(0.03, 0.03), gap_s=0.01)) as server:
        found = loop(
            server.url,
            "smollm2-135m",
            None,
            OPTIONS,
            run_dir=folder,
            slo="ttft_p95<=1s, tpot_p95<=100ms",
            streams=(1, 2),
            requests=6,
            point_requests=12,
            slots=16,
            tell=told.append,
            **DEVICE,
        )
    result = json.loads(found.answer.dumps())["result"]

    assert found.ended == "whole"
    assert told[:3] == ["measuring 1 streams", "measuring 2 streams", "calibrating"]
    assert result["rate_per_s"] > 0
    assert [row["metric"] for row in result["rows"]][-1] == "output_tokens_per_s"
    assert all(row["predicted"] and row["measured"] and row["ratio"] for row in result["rows"])
    assert load_calibration(folder / "calibration.toml").source == "request records"
    assert {each.parent.name for each in folder.glob("**/run.json")} == {"concurrency-1", "concurrency-2", "point"}


@pytest.mark.parametrize(
    ("change", "told"),
    [({"slo": "fast"}, "fast"), ({"requests": 0}, "requests"), ({"streams": tuple(range(1, 12))}, "at most 8 levels")],
)
def test_wrong_settings_are_refused_before_any_traffic(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    """Each is one clear line; no server is asked."""
    settings: dict[str, Any] = {"run_dir": tmp_path / "loop", "slo": "ttft_p95<=1s"} | change
    with pytest.raises(InputError, match=told):
        loop("http://127.0.0.1:9", "smollm2-135m", None, OPTIONS, **settings, **DEVICE)


def test_an_occupied_folder_is_refused(tmp_path: Path) -> None:
    """A run directory that holds something is not written into."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="not empty"):
        loop("http://127.0.0.1:9", "smollm2-135m", None, OPTIONS, run_dir=tmp_path, slo="ttft_p95<=1s", **DEVICE)
