"""``simulate`` with conversations: what the cache had, where each policy stops keeping up, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

import servewise
from servewise.ask.experiment import Row, seen_knee
from servewise.errors import InputError
from servewise.metrics.saturation import Balance
from servewise.metrics.summary import summarise
from servewise.records.columns import RequestColumns
from servewise.workload.conversations import Conversations
from servewise.workload.load import load_workload

FILE = """
requests = 60
[arrivals]
{arrivals}
[turns]
kind = "fixed"
tokens = 3
[user_tokens]
kind = "fixed"
tokens = 400
[output_tokens]
kind = "fixed"
tokens = 20
[thinking]
mean_s = 5
"""
OPEN, USERS = 'kind = "poisson"\nrate_per_s = 0.1', 'kind = "closed"\nconcurrency = 4'


def asked(folder: Path, arrivals: str = OPEN, **more: Any) -> servewise.Answer:
    """The answer for the workload of the file on one A100."""
    path = folder / "talks.toml"
    path.write_text(FILE.format(arrivals=arrivals))
    options: dict[str, Any] = {"prefix_cache": True, "seeds": 1, "estimator": "ideal", **more}
    return servewise.simulate("llama-3-8b", "a100-80gb", workload=str(path), **options)


def test_the_row_tells_what_the_cache_had(tmp_path: Path) -> None:
    """With room for all, turns of 400, 820 and 1,240 tokens find 0, 416 (419) and 832 (839): 50.7% of the prompts.

    Of the turns that count as many are first, second and third ones, give or take those at the ends.
    """
    row = asked(tmp_path).result["rows"][0]
    assert row["completed"] == 60
    assert row["cached_tokens"] / row["prompt_tokens"] == row["prefix_hit_rate"]
    assert row["prefix_hit_rate"] == pytest.approx((416 + 832) / (400 + 820 + 1240), abs=0.03)
    assert asked(tmp_path, prefix_cache=False).result["rows"][0]["prefix_hit_rate"] == 0


def test_a_cache_brings_the_first_token_sooner(tmp_path: Path) -> None:
    """The mean TTFT falls, since half of the prompt tokens are there."""
    with_cache, without = (asked(tmp_path, prefix_cache=on).result["rows"][0] for on in (True, False))
    assert with_cache["ttft_s"]["mean"] < 0.7 * without["ttft_s"]["mean"]


def test_users_have_no_rate_and_keep_up(tmp_path: Path) -> None:
    """Four users who wait: the rate is what they reach, about 4 / (5 s + the answer's time), and no knee beyond."""
    found = asked(tmp_path, USERS)
    row = found.result["rows"][0]
    assert row["stable"]
    assert row["rate_per_s"] == pytest.approx(4 / (5 + row["e2e_s"]["mean"]), rel=0.1)
    assert "4 users in a closed loop" in found.conditions.load
    with pytest.raises(InputError, match="no rate"):
        asked(tmp_path, USERS, rate=2.0)


def test_the_knee_is_between_rates_that_were_run() -> None:
    """Steady at 1 and 2, growing at 4: it keeps up at 2 and no longer at 4; with none growing, the end is not known."""

    def row(verdict: Literal["steady", "growing"]) -> Row:
        balance = Balance(verdict=verdict, growth_per_s=0.0, ci95=(0.0, 0.0), offered_per_s=1.0, reason="")
        return Row(summary, balance)

    summary = summarise(RequestColumns())
    found = seen_knee({1.0: row("steady"), 4.0: row("growing"), 2.0: row("steady")})
    assert found.high_per_s == 4.0
    assert found.low_per_s == pytest.approx(2.0)
    assert found.low_per_s > 2.0
    assert seen_knee({1.0: row("steady")}).high_per_s == float("inf")
    assert seen_knee({1.0: row("growing")}).low_per_s == 0


def test_conversations_that_outgrow_the_model_are_told(tmp_path: Path) -> None:
    """A context of 1,000 tokens ends them after two turns, and the answer says so."""
    found = asked(tmp_path, max_context=1_000)
    assert [each.code for each in found.caveats if each.code == "outgrown-context"]
    assert found.result["rows"][0]["rejected"] == 0
    assert not [each for each in asked(tmp_path).caveats if each.code == "outgrown-context"]


def test_a_plan_wants_single_requests() -> None:
    """A plan scales requests' times, which conversations have from their answers."""
    with pytest.raises(InputError, match="wait for their answers"):
        servewise.plan("llama-3-8b", "a100-80gb", workload="chat-multiturn", slo="ttft_p95<=1s")


def test_prefix_counts_what_conversations_share() -> None:
    """``prefix`` on the preset: an endless cache finds what the closed form of the lengths says, 88%."""
    found = servewise.prefix("chat-multiturn").result
    workload = load_workload("chat-multiturn")
    assert isinstance(workload, Conversations)
    prompts = found_tokens = first = 0
    for talk in workload.conversations(0):
        before = 0 if not first else 31 * 16  # the very first has no system prompt to find
        for prompt, output in zip(talk.prompts, talk.outputs, strict=True):
            prompts, found_tokens, first = prompts + prompt, found_tokens + before, 1
            before = (prompt + output) // 16 * 16
    assert found["prompt_tokens"] == prompts
    assert found["reusable_tokens"] == pytest.approx(found_tokens, rel=0.001)
