"""``simulate`` with speculating sequences, with pipeline stages, and with a pool as the engine's log tells it."""

from __future__ import annotations

from typing import Any

import pytest

from servewise.ask.simulate import simulate
from servewise.errors import InputError


def asked(model: str = "llama-3.1-70b", **more: Any) -> list[dict[str, Any]]:
    """The rows of a small run on H100s."""
    usual: dict[str, Any] = {
        "workload": "azure-conv",
        "requests": 120,
        "rate": 0.5,
        "seeds": 1,
        "policy": "vllm",
        "tp": 4,
    }
    rows: list[dict[str, Any]] = simulate(model, "h100-sxm", **(usual | more)).result["rows"]
    return rows


def test_a_row_tells_what_a_verification_gave() -> None:
    """K = 3 at acceptance 0.7 gives (1 - 0.7^4) / 0.3 = 2.53 tokens, less what ends cut off."""
    (plain,), (row,) = asked(), asked(speculate="draft:llama-3.2-1b", acceptance=0.7)
    assert row["tokens_per_verification"] == pytest.approx(2.533, rel=0.03)
    assert row["drafted_tokens"] == 3 * row["verifications"]
    assert row["acceptance_by_position"] == pytest.approx([0.7, 0.49, 0.343], abs=0.02)
    assert row["tpot_s"]["p50"] < 0.6 * plain["tpot_s"]["p50"]
    assert row["completed"] == plain["completed"]


def test_the_draft_takes_memory() -> None:
    """In a pool that is just enough, the draft's weights and cache cost preemptions or waiting, never requests."""
    (row,) = asked(speculate="draft:llama-3.2-1b", acceptance=0.0, rate=2.0)
    assert row["tokens_per_verification"] == 1.0
    assert row["completed"] + row["rejected"] == 120


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"acceptance": 0.7}, "speculate"),
        ({"draft_tokens": 5}, "speculate"),
        ({"speculate": "eagle"}, "acceptance"),
        ({"speculate": "eagle", "acceptance": 1.5}, "acceptance"),
        ({"speculate": "wish", "acceptance": 0.5}, "drafter"),
        ({"speculate": "eagle", "acceptance": 0.5, "policy": "static"}, "static"),
        ({"kv_blocks": 0}, "kv_blocks"),
    ],
)
def test_what_would_be_ignored_is_refused(more: dict[str, Any], where: str) -> None:
    """Options without what they belong to, rates that are none, policies that cannot: one line that names it."""
    with pytest.raises(InputError, match=where):
        asked(**more)


def test_a_pool_from_the_log_is_the_pool() -> None:
    """With blocks for some of the largest requests alone, the others wait."""
    (usual,), (tight,) = asked(rate=4.0), asked(rate=4.0, kv_blocks=900)
    assert tight["mean_phases"]["queue_s"] > 10 * usual["mean_phases"]["queue_s"]


def test_two_stages_answer_one_request_no_sooner_and_carry_more() -> None:
    """A request alone takes one accelerator's time and the hops; in plenty, two batches are under way."""
    of: dict[str, Any] = {"model": "llama-3.1-8b", "tp": 1}
    (alone,), (staged,) = asked(**of, rate=0.01), asked(**of, pp=2, rate=0.01)
    assert 1.0 <= staged["tpot_s"]["p50"] / alone["tpot_s"]["p50"] < 1.1
    (alone,), (staged,) = asked(**of, rate=500.0, kv_blocks=20_000), asked(**of, pp=2, rate=500.0, kv_blocks=20_000)
    assert staged["output_tokens_per_s"] > 1.1 * alone["output_tokens_per_s"]
