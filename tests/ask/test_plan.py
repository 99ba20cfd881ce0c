"""Plans as answers: CONTRACT's keys, reasons, prices, and an SLO that nothing meets."""

from __future__ import annotations

import json

import pytest
from tests.ask.made import chat

from servewise.answer import Answer
from servewise.ask.plan import plan
from servewise.errors import InputError, UnknownName

SLO = "ttft_p95<=2s, tpot_p95<=60ms"
RANKED = {
    "deployment",
    "max_rate_per_s",
    "ttft_s",
    "tpot_s",
    "usd_per_million_output_tokens",
    "accelerators",
    "bound",
    "why",
}


@pytest.fixture(scope="module")
def answer() -> Answer:
    """Llama 2 13B on one or two of three accelerators."""
    return plan("llama-2-13b", ["a100-80gb", "h100-sxm", "t4"], workload=chat(300), slo=SLO, counts=[1, 2])


def test_contracts_keys(answer: Answer) -> None:
    """Ranking, rejected, recommendation and sensitivity are there, each with its keys, in one JSON document."""
    result = json.loads(answer.dumps())["result"]

    assert set(result) >= {"ranking", "rejected", "recommendation", "sensitivity"}
    assert all(set(row) >= RANKED for row in result["ranking"])
    assert all(set(row) >= {"deployment", "why"} for row in result["rejected"])
    assert all(set(row) >= {"input", "change", "max_rate_per_s", "ratio"} for row in result["sensitivity"])
    assert len(result["ranking"]) + len(result["rejected"]) == 6


def test_every_row_keeps_the_slo(answer: Answer) -> None:
    """At its highest rate each candidate's own percentiles are within both limits."""
    for row in answer.result["ranking"]:
        assert row["ttft_s"]["p95"] <= 2.0
        assert row["tpot_s"]["p95"] <= 0.06


def test_the_recommendation_is_the_first(answer: Answer) -> None:
    """The recommended deployment heads the ranking, and costs least a token."""
    result = answer.result
    costs = [row["usd_per_million_output_tokens"] for row in result["ranking"]]

    assert result["recommendation"]["deployment"] == result["ranking"][0]["deployment"]
    known = [each for each in costs if each is not None]
    assert known == sorted(known)
    assert result["ranked_by"] == "usd_per_million_output_tokens"


def test_the_cost_is_the_price_over_the_tokens(answer: Answer) -> None:
    """Dollars an hour over output tokens an hour: rate x mean output, of the traffic that was run."""
    row = answer.result["ranking"][0]
    tokens_per_hour = row["usd_per_hour"] / row["usd_per_million_output_tokens"] * 1e6

    mean_output = tokens_per_hour / 3600 / row["max_rate_per_s"]
    assert 70 < mean_output < 110  # lognormal of median 80, sigma 0.5: mean 90.6


def test_losers_say_why_with_numbers(answer: Answer) -> None:
    """Each loser's sentence holds its own cost and the winner's."""
    first, *others = answer.result["ranking"]
    for row in others:
        for each in (row, first):
            assert f"${each['usd_per_million_output_tokens']:,.3g} per M output tokens" in row["why"]


def test_each_candidate_is_in_one_list_and_who_beats_it_is_named() -> None:
    """Of four, one is ranked and three are not: each with the best that it could be, beaten by #1 or by nobody."""
    found = plan(
        "llama-2-13b", ["a100-80gb", "h100-sxm"], workload=chat(100), slo=SLO, counts=1, slots=[16, 64], top=1
    ).result
    (first,) = found["ranking"]

    assert (len(found["not_ranked"]), found["behind"], found["rejected"]) == (3, 3, [])
    assert set(first["alone_s"]) == {"ttft_p95", "tpot_p95"}
    assert first["dominated_by"] is None
    assert {row["shown_by"] for row in found["not_ranked"]} <= {"weighed", "bound", "simulation"}
    for row in found["not_ranked"]:
        assert row["least_usd_per_million_output_tokens"] >= first["usd_per_million_output_tokens"]
        assert row["dominated_by"] in (None, {"place": 1, "title": first["deployment"]["title"]})
    own = first["deployment"]["accelerator"]
    (same,) = (row for row in found["not_ranked"] if row["deployment"]["accelerator"] == own)
    assert same["dominated_by"] is not None


def test_goodput_per_accelerator_and_fewest_are_apart(answer: Answer) -> None:
    """Both figures stand in each row, under names of their own."""
    for row in answer.result["ranking"]:
        assert row["rate_per_accelerator_per_s"] == pytest.approx(row["max_rate_per_s"] / row["accelerators"])
        assert row["accelerators_in_all"] == row["accelerators"] * row["replicas"]


def test_an_slo_that_nothing_meets_names_the_closest() -> None:
    """A microsecond a token: no recommendation, the nearest candidate with its factor, and a caveat."""
    found = plan("llama-2-13b", ["a100-80gb", "h100-sxm"], workload=chat(100), slo="tpot_p50<=1us", counts=1)

    assert found.result["recommendation"] is None
    assert found.result["ranking"] == []
    assert found.result["closest"]["deployment"]["accelerator"] == "h100-sxm"
    assert found.result["closest"]["slo_factor"] > 1000
    assert "no-plan" in {each.code for each in found.caveats}


def test_nothing_fits_has_no_closest() -> None:
    """What does not fit is not near to keeping any SLO."""
    found = plan("llama-2-70b", "t4", workload=chat(100), slo=SLO, counts=1)

    assert found.result["recommendation"] is None
    assert found.result["closest"] is None
    assert "short on each accelerator" in found.result["rejected"][0]["why"]


def test_a_rate_is_priced_as_whole_replicas() -> None:
    """Twenty requests a second take as many replicas as carry them; 10% more or less shows what that does."""
    found = plan(
        "llama-2-13b", "a100-80gb", workload=chat(200), slo=SLO, counts=1, rate=20.0, prices={"a100-80gb": 2.0}
    ).result
    (row,) = found["ranking"]

    assert row["replicas"] * row["max_rate_per_s"] >= 20.0 > (row["replicas"] - 1) * row["max_rate_per_s"]
    assert row["usd_per_hour"] == pytest.approx(2.0 * row["replicas"])
    assert [each["change"] for each in found["sensitivity"] if each["input"].startswith("rate")] == ["-10%", "+10%"]


def test_an_unknown_price_is_null_and_said() -> None:
    """An accelerator without a quote is ranked by goodput, with a caveat, and no invented dollars."""
    found = plan("llama-3.1-8b", "gaudi-3", workload=chat(100), slo="ttft_p95<=5s, tpot_p95<=1s", counts=1)
    (row,) = found.result["ranking"]

    assert row["usd_per_million_output_tokens"] is None
    assert found.result["ranked_by"] == "rate_per_accelerator_per_s"
    assert "unknown-price" in {each.code for each in found.caveats}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"rate": 0.0}, "rate"),
        ({"counts": [0]}, "counts"),
        ({"counts": []}, "counts"),
        ({"slots": [0]}, "slots"),
        ({"slo": "ttft_p42<=1s"}, "percentile"),
        ({"prices": {"a100-80gb": -1.0}}, "price of a100-80gb"),
        ({"prices": {"h100": 1.0}}, "prices"),
        ({"policy": "fifo"}, "policy"),
        ({"memory_utilization": 1.5}, "memory_utilization"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], line: str) -> None:
    """Each option that makes no sense is refused by its name."""
    settings: dict[str, object] = {"workload": chat(20), "slo": SLO, "counts": 1} | options
    with pytest.raises(InputError, match=line):
        plan("llama-2-13b", "a100-80gb", **settings)  # type: ignore[arg-type]


def test_an_unknown_accelerator_gets_the_nearest() -> None:
    """a100-80 is answered with a100-80gb."""
    with pytest.raises(UnknownName, match="a100-80gb"):
        plan("llama-2-13b", "a100-80", workload=chat(20), slo=SLO)


def test_a_workload_too_short_to_queue_is_said() -> None:
    """Twenty requests that all come within one request's life show no queue; three hundred of them at 5/s do."""
    short = plan("llama-2-13b", "a100-80gb", workload=chat(20), slo="ttft_p95<=10s", counts=1)

    assert "short-workload" in {each.code for each in short.caveats}


def test_a_long_workload_is_not_called_short() -> None:
    """A tight TTFT of 3,000 requests: the run lasts many times as long as a request."""
    long = plan("llama-2-13b", "a100-80gb", workload=chat(3000), slo="tpot_p95<=20ms", counts=1)

    assert "short-workload" not in {each.code for each in long.caveats}


def test_a_rate_inside_the_winners_interval_is_said() -> None:
    """Asked for a rate that the winner carries in the middle but not at the low end: a caveat with the sure number."""
    free = plan("llama-2-13b", ["a100-80gb"], workload=chat(300), slo=SLO, counts=[1])
    low, high = free.result["ranking"][0]["ci95_max_rate_per_s"]
    wanted = free.result["ranking"][0]["max_rate_per_s"] * 0.999
    codes = {
        rate: [
            c.code
            for c in plan("llama-2-13b", ["a100-80gb"], workload=chat(300), slo=SLO, counts=[1], rate=rate).caveats
        ]
        for rate in (wanted, low * 0.5)
    }

    assert low < wanted <= high
    assert "rate-in-interval" in codes[wanted]
    assert "rate-in-interval" not in codes[low * 0.5]


def test_who_is_ruled_out_by_its_links_is_told_so() -> None:
    """Eight L40S over PCIe spend most of a prompt on all-reduces: the reason names the links."""
    found = plan("llama-3.1-8b", ["l40s"], workload=chat(300), slo="ttft_p95<=100ms", counts=[8])

    assert "links between accelerators" in found.result["rejected"][0]["why"]
