"""The question ``fleet``: answers that can be worked out, against ``simulate`` and by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ask.made import KV_BYTES, LLAMA_13B_PARAMETERS, STUDY, chat, equal

import servewise
from servewise import fleet, simulate
from servewise.ask.fleet_options import Further, autoscale_of, failures_of, further_of, link_of, splits_of
from servewise.errors import InputError, ServewiseError
from servewise.records.run_directory import read_run
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.outage import Outage
from servewise.workload.arrivals import Poisson
from servewise.workload.conversations import Conversations
from servewise.workload.lengths import Fixed
from servewise.workload.load import load_workload
from servewise.workload.prefix import SharedPrefix
from servewise.workload.synthetic import ClosedLoop, Synthetic

MODEL = "llama-2-13b"


def prefixed(groups: int, count: int = 240) -> Synthetic:
    """Prompts that begin with one of ``groups`` prefixes of 512 tokens."""
    return Synthetic(
        arrivals=Poisson(2.0),
        prompt_lengths=Fixed(32),
        output_lengths=Fixed(8),
        count=count,
        prefix=SharedPrefix(groups=groups, tokens=512),
    )


def rows(**asked: Any) -> list[dict[str, Any]]:
    """The rows of an answer on the study's accelerator, one seed."""
    options: dict[str, Any] = {"seeds": 1, **asked, **STUDY}
    return list(fleet(MODEL, **options).result["rows"])


@pytest.mark.parametrize("split", [{}, {"tp": 1, "pp": 2}])
def test_one_replica_is_simulate(split: dict[str, int]) -> None:
    """A fleet of one has the latencies, counts and intervals of ``simulate``, pipelined or not."""
    asked: dict[str, Any] = {"workload": chat(), "rate": 2.0, "seeds": 2, "slots": 8, "slo": "ttft_p95<=1s", **split}
    alone = simulate(MODEL, "a100-80gb", **asked).result["rows"][0]
    one = fleet(MODEL, "a100-80gb", replicas=1, **asked).result["rows"][0]

    for key in ("ttft_s", "tpot_s", "itl_s", "e2e_s", "completed", "utilisation", "goodput_per_s", "mean_phases"):
        assert one[key] == alone[key], key


def test_replicas_share_the_requests() -> None:
    """Round robin over four: 200 requests are 50 each, and their tokens add up to the row's."""
    found = fleet(MODEL, workload=equal(200, 100, 20), replicas=4, rate=8.0, seeds=1, **STUDY).result

    assert [each["requests"] for each in found["replicas"]] == [50] * 4
    assert sum(each["output_tokens"] for each in found["replicas"]) == 200 * 20
    assert {each["role"] for each in found["replicas"]} == {"mixed"}


def test_replica_hours_and_dollars_by_hand() -> None:
    """Two replicas of two accelerators for the run's seconds, three dollars an accelerator-hour."""
    found = fleet(MODEL, "a100-80gb", tp=2, workload=equal(50, 100, 20), replicas=2, rate=2.0, price=3.0, seeds=1)
    row = found.result["rows"][0]
    seconds = found.result["replicas"][0]["paid_s"]

    assert row["replica_hours"] == pytest.approx(2 * seconds / 3600)
    assert row["accelerator_hours"] == pytest.approx(4 * seconds / 3600)
    assert row["usd"] == pytest.approx(4 * seconds / 3600 * 3.0)
    assert row["usd_per_million_output_tokens"] == pytest.approx(row["usd"] / (50 * 20) * 1e6)


def test_prefix_aware_routing_finds_more_in_the_caches() -> None:
    """Eight prefixes, four replicas: in turn each replica must compute each prefix, by prefix one of them does."""
    asked: dict[str, Any] = {"workload": prefixed(8), "replicas": 4, "rate": 2.0, "prefix_cache": True}
    names = ("round-robin", "prefix-aware", "session-sticky")
    found = {row["router"]: row["prefix_hit_rate"] for row in rows(router=names, **asked)}

    assert found["prefix-aware"] == pytest.approx((1 - 8 / 240) * 512 / 544, abs=0.02)
    assert found["session-sticky"] == pytest.approx(found["prefix-aware"], abs=0.02)
    assert found["round-robin"] == pytest.approx((1 - 4 * 8 / 240) * 512 / 544, abs=0.03)


def test_transfers_by_hand() -> None:
    """100 tokens of KV over 50 GB/s and 10 us: their bytes, and a transfer's share of the latency."""
    found = rows(
        workload=equal(50, 100, 20, rate=0.5), disaggregate="1P1D", link="50GB/s:10us", router="least-loaded"
    )  # fmt: skip
    split = found[1]

    assert [row["layout"] for row in found] == ["2 mixed", "1P1D"]
    assert split["transfers"]["mean_bytes"] == 100 * KV_BYTES
    assert split["transfers"]["mean_sending_s"] == pytest.approx(100 * KV_BYTES / 50e9)
    assert split["mean_phases"]["transfer_s"] >= 100 * KV_BYTES / 50e9 + 10e-6
    assert sum(split["mean_phases"].values()) == pytest.approx(split["e2e_s"]["mean"])


def test_tensor_parallel_ranks_send_side_by_side() -> None:
    """Two ranks send half each over their own links: the same bytes in half the time."""
    asked: dict[str, Any] = {"workload": equal(20, 100, 20, rate=0.5), "disaggregate": "1P1D", "link": "50GB/s"}
    one, two = (rows(**asked, tp=ranks)[1]["transfers"] for ranks in (1, 2))

    assert two["mean_bytes"] == one["mean_bytes"]
    assert two["mean_sending_s"] == pytest.approx(one["mean_sending_s"] / 2)


def test_apart_pays_only_where_prefill_holds_up_decode() -> None:
    """Long prompts: a mixed replica spends the share rate x prefill of its time in them, while others wait for tokens,
    so that TPOT apart is 1 - 0.75/s x 0.3 s of theirs; short prompts: nothing to gain, and TTFT pays the way.

    That is DistServe's finding (Zhong et al. 2024, section 2.3: interference).
    """
    prefill_s = 2 * LLAMA_13B_PARAMETERS * 3500 / 312e12
    asked: dict[str, Any] = {"replicas": 2, "disaggregate": "1P1D", "link": "50GB/s", "router": "random"}
    mixed, apart = rows(workload=equal(600, 3500, 100), rate=1.5, **asked)
    short = rows(workload=equal(400, 20, 100), rate=8.0, **asked)[1]["against_mixed"]

    assert apart["tpot_s"]["mean"] / mixed["tpot_s"]["mean"] == pytest.approx(1 - 0.75 * prefill_s, rel=0.08)
    assert short["tpot_p95"] > 0.95
    assert short["ttft_p95"] > 1.0


def test_further_replicas_of_another_kind() -> None:
    """Two and one of another accelerator of weight 2: half of the requests each."""
    found = fleet(
        MODEL, "a100-80gb", also="1:h100-sxm@2", workload=equal(80, 100, 20), replicas=2, rate=4.0, seeds=1
    )  # fmt: skip
    requests = [each["requests"] for each in found.result["replicas"]]

    assert requests == [20, 20, 40]
    assert "H100" in found.result["replicas"][2]["hardware"]
    assert "H100" in found.conditions.hardware


def test_failures_are_counted() -> None:
    """One of two replicas dies early and for good: what ran is retried, all complete at the other; or they fail."""
    asked: dict[str, Any] = {"workload": equal(60, 500, 200), "replicas": 2, "rate": 5.0, "fail": "r0@5s"}
    retried, failed = rows(**asked)[0], rows(**asked, on_failure="fail")[0]

    assert retried["completed"] == 60
    assert retried["retries"] >= retried["retried"] > 0
    assert failed["failed"] > 0
    assert failed["completed"] + failed["failed"] == 60


def test_an_autoscaled_fleet_tells_its_heads() -> None:
    """Overloaded from the start: more replicas come, and the time of each is counted."""
    row = rows(
        workload=equal(300, 500, 100), replicas=1, rate=6.0, slots=4, autoscale="load=0.8,max=3,every=2s,start=3s"
    )[0]

    assert row["layout"] == "1 to 3 mixed"
    assert row["replicas_over_time"][0] == [0.0, 1, 0, 0, 0]
    assert max(up for _, up, *_ in row["replicas_over_time"]) == 3


def test_users_in_a_closed_loop_and_conversations() -> None:
    """Loads that answer back have no rate of their own, and run."""
    loop = ClosedLoop(
        concurrency=4, think_s=0.0, prompt_lengths=Fixed(50), output_lengths=Fixed(10), requests=40
    )  # fmt: skip
    talks = Conversations(
        arrivals=Poisson(0.5), turns=Fixed(3), user_tokens=Fixed(64), output_tokens=Fixed(32), count=60
    )

    assert rows(workload=loop, replicas=2)[0]["completed"] == 40
    assert rows(workload=talks, replicas=2, router="session-sticky", prefix_cache=True)[0]["prefix_hit_rate"] > 0.4


def test_lockstep_is_no_faster() -> None:
    """Ranks that wait for each other have longer gaps between tokens than ranks that do not."""
    asked: dict[str, Any] = {"workload": chat(), "replicas": 3, "rate": 4.0}

    assert rows(**asked, lockstep=True)[0]["tpot_s"]["p95"] > rows(**asked)[0]["tpot_s"]["p95"]


def test_runs_are_kept(tmp_path: Path) -> None:
    """Each row's first run is a run directory, its requests named by replica."""
    rows(workload=equal(20, 50, 10), replicas=2, router=["round-robin", "least-loaded"], run_dir=tmp_path)
    kept = read_run(tmp_path / "round-robin-2-mixed-1")

    assert set(kept.requests.replica) == {0, 1}
    assert kept.kind == "simulated"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"router": "fastest"}, "router"),
        ({"router_settings": {"speed": 1}}, "setting"),
        ({"router_settings": {"waiting_weight": "-1"}}, "waiting_weight"),
        ({"fail": "r9@1s"}, "no replica 9"),
        ({"fail": "0@1s"}, "fail"),
        ({"on_failure": "pray"}, "on_failure"),
        ({"autoscale": "mood=3"}, "autoscale"),
        ({"autoscale": "load=0.5,wait=2s"}, "two targets"),
        ({"autoscale": "max=3"}, "no target"),
        ({"disaggregate": "2P"}, "no split"),
        ({"disaggregate": "2P2D", "replicas": 3}, "equal number"),
        ({"disaggregate": "1P1D", "fail": "r0@1s"}, "disaggregate"),
        ({"disaggregate": "1P1D", "policy": "static"}, "static"),
        ({"disaggregate": "1P1D", "link": "string and tins"}, "link"),
        ({"also": "two"}, "also"),
        ({"replicas": 0}, "replicas"),
        ({"count": 2, "tp": 1}, "count"),
        ({"price": -1.0}, "price"),
        ({"lockstep": True, "autoscale": "load=0.5"}, "lockstep"),
        ({"lockstep": True, "pp": 2, "tp": 1}, "lockstep"),
    ],
)
def test_what_cannot_be_is_one_clear_error(wrong: dict[str, Any], words: str) -> None:
    """Each mistake names the setting or what is wrong with it."""
    with pytest.raises(ServewiseError, match=words):
        rows(workload=equal(5, 50, 10), **wrong)


def test_texts_of_options() -> None:
    """What stands in a text is what the object says."""
    assert failures_of("r0@60s:120s,r1@1.5min") == (Outage(0, 60.0, 120.0), Outage(1, 90.0))
    assert autoscale_of("wait=2s,min=2,max=4,every=5s,start=1min,settle=0") == Autoscale(
        metric="wait", target=2.0, least=2, most=4, interval_s=5.0, startup_s=60.0, settle_s=0.0
    )
    assert splits_of("1P3D, 2p2d", None) == ((1, 3), (2, 2))
    assert further_of("2:a100-80gb") == (Further(2, "a100-80gb"),)
    assert link_of("InfiniBand NDR").bytes_per_s > 1e10


def test_a_trace_varies_only_with_a_router_that_draws() -> None:
    """Two random routers of other seeds differ; a trace in turn is one run, whatever the seeds."""
    asked: dict[str, Any] = {"workload": "azure-conv", "requests": 50, "replicas": 2, "seeds": 2, **STUDY}

    assert fleet(MODEL, **asked, router="round-robin").conditions.seeds == (0,)
    assert fleet(MODEL, **asked, router="random").conditions.seeds == (0, 1)


def test_the_package_offers_it() -> None:
    """``servewise.fleet`` is the function of the command."""
    assert servewise.fleet.__module__ == "servewise.ask.fleet"
    assert issubclass(InputError, ServewiseError)


def test_settling_is_not_billed_and_failures_count_from_its_end() -> None:
    """Replicas are paid for as long as figures count; a server that is down in all of it ends none."""
    load = load_workload("chat-multiturn")
    assert isinstance(load, Conversations)
    settled = replace(load, settle_s=120.0, count=150)
    asked = {"workload": settled, "replicas": 2, "rate": 4.0, "seeds": 1, "router": "least-loaded"}
    (row,) = fleet("llama-3.1-8b", "h100-sxm", **asked).result["rows"]  # type: ignore[arg-type]
    counted_s = row["completed"] / row["requests_per_s"]
    assert row["replica_hours"] * 3600 == pytest.approx(2 * counted_s, rel=0.15)
    struck = fleet("llama-3.1-8b", "h100-sxm", fail="r0@0s:500s", **asked).result  # type: ignore[arg-type]
    assert [each["requests"] for each in struck["replicas"]] == [0, 150]


@pytest.mark.parametrize(
    "more", [{"link": "InfiniBand NDR"}, {"overlap": True}, {"decode_router": "random"}, {"on_failure": "fail"}]
)
def test_what_would_be_ignored_is_refused(more: dict[str, Any]) -> None:
    """A link without servers apart, a rule without failures: one line that says what is missing."""
    with pytest.raises(InputError, match="give --"):
        fleet("llama-3.1-8b", "h100-sxm", workload="azure-conv", requests=10, **more)
