"""Quality over HTTP, against a stand-in server whose divergence is known."""

from __future__ import annotations

import pytest

pytest.importorskip("httptools")
pytest.importorskip("orjson")

from servewise.ask.quality import Compared, quality
from servewise.errors import RunFailed
from servewise.measure.addressing import target_of
from servewise.measure.mock.distribution import divergence
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import running_mock
from servewise.measure.target import Api


def compared(url: str, precision: str, api: Api = "chat") -> Compared:
    """The stand-in as one side."""
    return Compared(target=target_of(url, model="mock", api=api), precision=precision)


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_build_that_changes_a_tenth_of_the_tokens_is_found_out(api: Api) -> None:
    """Agreement a step and KL a step are those that the stand-in was told, within four standard errors."""
    share = 0.1
    quick = {"first_s": (0.0, 0.0), "gap_s": 0.0}
    with (
        running_mock(MockPlan(**quick)) as plain,  # type: ignore[arg-type]
        running_mock(MockPlan(**quick, changed_share=share)) as changed,  # type: ignore[arg-type]
    ):
        a, b = compared(plain.url, "bf16", api), compared(changed.url, "q4", api)
        answer = quality(a, b, hardware="mock", count=96, output_tokens=32, concurrency=8)
    found = answer.result["quality"]
    assert found["prompts"] == 96
    assert found["unit"] == "tokens"
    error = (share * (1 - share) / found["steps_compared"]) ** 0.5
    assert found["step_agreement"] == pytest.approx(1 - share, abs=4 * error)
    assert found["kl_low_nats"] == pytest.approx(divergence(1 - found["step_agreement"]), rel=1e-3)
    assert found["tv_low"] <= found["tv_high"]
    assert [row["precision"] for row in answer.result["rows"]] == ["bf16", "q4"]
    assert all(row["completed"] == 96 and row["ttft_s"]["p50"] > 0 for row in answer.result["rows"])


def test_a_build_agrees_with_itself() -> None:
    """The same server twice gives the same answers, at no divergence."""
    with running_mock(MockPlan(first_s=(0.0, 0.0), gap_s=0.0)) as server:
        side = compared(server.url, "bf16")
        answer = quality(side, side, hardware="mock", count=9, output_tokens=8, concurrency=3)
    found = answer.result["quality"]
    assert (found["exact_share"], found["step_agreement"]) == (1.0, 1.0)
    assert found["kl_low_nats"] == pytest.approx(0.0, abs=1e-9)


def test_a_server_that_is_not_there_is_a_failed_run() -> None:
    """One clear line says how its requests ended."""
    with running_mock(MockPlan(first_s=(0.0, 0.0), gap_s=0.0)) as server:
        a, b = compared(server.url, "bf16"), compared("http://127.0.0.1:9", "q4")
        with pytest.raises(RunFailed, match="refused"):
            quality(a, b, hardware="mock", count=2, output_tokens=2)
