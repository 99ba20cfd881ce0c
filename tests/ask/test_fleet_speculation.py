"""``fleet`` whose replicas speculate: the figures of ``simulate``, one tally of all replicas, clear refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.ask.made import equal

from servewise.ask import long_runs
from servewise.ask.fleet import fleet
from servewise.ask.simulate import simulate
from servewise.errors import InputError
from servewise.executing import executor

MODEL, CARD = "llama-3.1-8b", "h100-sxm"
WORKLOAD: dict[str, Any] = {
    "workload": "azure-conv",
    "requests": 40,
    "rate": 8.0,
    "policy": "vllm",
    "estimator": "ideal",
}
DRAFTS: dict[str, Any] = {"speculate": "eagle3", "acceptance": "0.8,0.7,0.6"}
SAME = (
    *("ttft_s", "tpot_s", "itl_s", "e2e_s", "completed", "rejected", "preemptions", "utilisation", "mean_phases"),
    *("output_tokens_per_s", "goodput_per_s", "tokens_per_verification", "drafted_tokens", "verifications"),
    *("acceptance_by_position", "undrafted_tokens"),
)


def row(**asked: Any) -> dict[str, Any]:
    """The one row of a fleet."""
    (found,) = fleet(MODEL, CARD, **WORKLOAD | {"seeds": 1} | asked).result["rows"]
    return dict(found)


@pytest.mark.parametrize(
    "drafts",
    [
        DRAFTS | {"estimator": "calibrated"},
        {"speculate": "draft:llama-3.2-1b", "acceptance": 0.7, "draft_length": "measured"},
        {"speculate": "ngram", "acceptance": 0.6, "hit_rate": 0.4, "draft_tokens": 5, "speculate_until_batch": 3},
        {"speculate": "medusa", "acceptance": 0.5, "draft_length": "best", "draft_overhead": 0.0005},
        DRAFTS | {"pp": 2, "tp": 1},
    ],
)
def test_one_replica_that_speculates_is_simulate(drafts: dict[str, Any]) -> None:
    """The same latencies, intervals and words of speculation by the same seed; its caveats are told too."""
    asked: dict[str, Any] = WORKLOAD | drafts | {"seed": 3, "slo": "ttft_p95<=1s"}
    alone = simulate(MODEL, CARD, **asked)
    one = fleet(MODEL, CARD, replicas=1, **asked)

    (by_itself,), (found,) = alone.result["rows"], one.result["rows"]
    assert {key: found[key] for key in SAME} == {key: by_itself[key] for key in SAME}
    assert str(alone.conditions.policy) in str(one.conditions.policy)
    assert {each.code for each in alone.caveats} - {"replayed-trace", "unstable"} <= {each.code for each in one.caveats}


def test_one_rank_in_lockstep_waits_for_nobody() -> None:
    """Alone, a rank's steps last as long as without."""
    free, locked = row(replicas=1, **DRAFTS), row(replicas=1, lockstep=True, **DRAFTS)

    assert {key: locked[key] for key in SAME} == {key: free[key] for key in SAME}


def test_the_closed_form_over_many_replicas() -> None:
    """K = 3 at acceptance 0.7 gives (1 - 0.7^4) / 0.3 = 2.53 tokens a verification, whichever replica verified."""
    found = row(replicas=4, rate=16.0, requests=400, speculate="eagle3", acceptance=0.7)

    assert found["tokens_per_verification"] == pytest.approx(2.533, rel=0.03)
    assert found["drafted_tokens"] == 3 * found["verifications"]
    assert found["acceptance_by_position"] == pytest.approx([0.7, 0.49, 0.343], abs=0.02)
    assert found["tpot_s"]["p50"] < 0.7 * row(replicas=4, rate=16.0, requests=400)["tpot_s"]["p50"]


def test_each_accelerator_drafts_by_its_own_time() -> None:
    """A draft beside the target leaves each kind of replica fewer blocks and less time a step, each on its card."""
    asked: dict[str, Any] = {"workload": equal(40, 100, 50, rate=1.0), "seeds": 1, "replicas": 1, "also": "1:a100-80gb"}
    drafts: dict[str, Any] = {"speculate": "draft:llama-3.2-1b", "acceptance": 1.0}
    plain, drafted = (fleet(MODEL, CARD, **asked, **more) for more in ({}, drafts))
    busy = [
        [each["busy"] * each["paid_s"] for each in answer.result["replicas"]] for answer in (plain, drafted)
    ]  # fmt: skip

    gains = [one / other for one, other in zip(*busy, strict=True)]
    assert all(1 < gain < 4 for gain in gains)  # 4 tokens a verification, less the draft's passes
    assert gains[0] != pytest.approx(gains[1], rel=1e-3)


def test_portions_of_a_long_run_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut over processes by replica, the document is that of one process, tally and all."""
    asked: dict[str, Any] = WORKLOAD | DRAFTS | {"seeds": 2, "replicas": 3, "router": "random", "requests": 200}
    in_memory = fleet(MODEL, CARD, **asked).to_json()
    monkeypatch.setattr(long_runs, "LONG", 1)
    monkeypatch.setattr(executor, "SMALL", 1)
    cut = fleet(MODEL, CARD, processes=2, **asked).to_json()

    assert json.dumps(cut, sort_keys=True) == json.dumps(in_memory, sort_keys=True)


def test_replicas_that_die_or_are_added_speculate_too() -> None:
    """All requests end, and drafts stand as often as without."""
    found = row(
        replicas=1,
        settings={"max_num_seqs": 2},
        fail="r0@2s:4s",
        autoscale="load=0.5,max=3,every=1s,start=1s",
        **DRAFTS,
    )

    assert found["completed"] + found["rejected"] == 40
    assert found["acceptance_by_position"][0] == pytest.approx(0.8, abs=0.03)
    assert max(up for _, up, *_ in found["replicas_over_time"]) > 1


def test_a_fleet_that_does_not_speculate_says_nothing_of_it() -> None:
    """No keys of speculation in its rows."""
    assert "tokens_per_verification" not in row(replicas=2)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (DRAFTS | {"disaggregate": "1P1D"}, "speculate.*both.*--disaggregate"),
        ({"acceptance": 0.7}, "acceptance.*--speculate"),
        ({"draft_length": "best"}, "draft_length.*--speculate"),
        ({"speculate": "eagle"}, "acceptance"),
        ({"speculate": "wish", "acceptance": 0.5}, "drafter"),
        ({"speculate": "mtp", "acceptance": 0.5}, "no multi-token prediction layer"),
        ({"speculate": "eagle", "acceptance": 0.5, "hit_rate": 0.5}, "hit_rate"),
        (DRAFTS | {"policy": "static"}, "static"),
        ({"speculate": "draft:llama-3.1-70b", "acceptance": 0.5, "also": "1:a100-80gb"}, "leave no KV cache"),
    ],
)
def test_what_cannot_be_is_one_clear_error(more: dict[str, Any], words: str) -> None:
    """Options without what they belong to, drafts that do not fit, pools apart: one line that names it."""
    with pytest.raises(InputError, match=words):
        row(**more)
