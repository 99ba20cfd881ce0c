"""Whole plans, small enough to run in a second."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.made import poisson

from servewise.executing import executor
from servewise.executing.executor import Executor
from servewise.hardware.catalogue import load_accelerator
from servewise.metrics.slo import parse_slo
from servewise.modelspec.load import load_model
from servewise.plan import planner
from servewise.plan.candidates import Space, candidates
from servewise.plan.planner import Planned, find_plan, relative_spread
from servewise.plan.question import Question
from servewise.plan.sensitivity import CHANGES
from servewise.plan.traffic import stretches
from servewise.plan.weighing import Reason, Rejected

A100, H100, T4 = (load_accelerator(name) for name in ("a100-80gb", "h100-sxm", "t4"))
LLAMA = load_model("llama-2-13b")
QUESTION = Question(
    candidates=candidates(Space(model=LLAMA, accelerators=(A100, H100, T4), counts=(1, 2), engines=("ideal",))),
    traffic=poisson(400),
    slo=parse_slo("ttft_p95<=2s, tpot_p95<=60ms"),
    prices={"a100-80gb": 1.5, "h100-sxm": 3.0, "t4": 0.5},
    estimator="ideal",
)


@pytest.fixture(scope="module")
def found() -> Planned:
    """The plan of ``QUESTION``."""
    return find_plan(QUESTION)


def by_title(plan: Planned, *words: str) -> float:
    """The highest rate of the candidate whose title has those words."""
    (rate,) = (each.rate_per_s for each in plan.ranking if all(word in each.candidate.title for word in words))
    return rate


def test_every_candidate_is_ranked_or_ruled_out(found: Planned) -> None:
    """None is dropped in silence."""
    assert len(found.ranking) + len(found.rejected) == len(QUESTION.candidates)


def test_what_does_not_fit_says_by_how_much(found: Planned) -> None:
    """26 GB of weights do not fit on one 15 GiB card, and the reason is in bytes; two have room for few tokens."""
    reasons = {each.candidate.title: each.why for each in found.rejected}
    (why,) = (why for title, why in reasons.items() if title.startswith("1 x") and "T4" in title)

    assert "GiB short" in why


def test_more_hardware_carries_more(found: Planned) -> None:
    """Two A100 carry more than one, and an H100 of 1.6 times the bandwidth and thrice the peak more than an A100."""
    assert by_title(found, "2 x", "A100") > by_title(found, "1 x", "A100")
    assert by_title(found, "1 x", "H100") > by_title(found, "1 x", "A100")


def test_the_first_is_the_cheapest(found: Planned) -> None:
    """The order is that of dollars per token."""
    costs = [each.usd_per_million_output_tokens or 0 for each in found.costs]

    assert costs == sorted(costs)
    assert found.by.name == "usd_per_million_output_tokens"


def test_two_processes_find_the_same(found: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything but which process did it: ranking, costs, intervals, reasons, sensitivity."""
    monkeypatch.setattr(executor, "SMALL", 0)
    other = find_plan(QUESTION, Executor(processes=2))

    assert [(each.candidate.title, each.rate_per_s) for each in other.ranking] == [
        (each.candidate.title, each.rate_per_s) for each in found.ranking
    ]
    assert other.intervals == found.intervals
    assert other.costs == found.costs
    assert other.sensitivity == found.sensitivity
    assert [each.why for each in other.rejected] == [each.why for each in found.rejected]


def test_inputs_move_the_rate_the_right_way(found: Planned) -> None:
    """More bandwidth or peak never lowers the rate, shorter requests never do; longer ones lower it (to 2%)."""
    ratios = {(each.change.input, each.change.factor): each.ratio for each in found.sensitivity}

    assert set(ratios) == {(each.input, each.factor) for each in CHANGES}
    for name in ("bandwidth", "peak"):
        assert ratios[name, 1.1] >= 0.97
        assert ratios[name, 0.9] <= 1.03
    assert ratios["lengths", 0.9] > 1.05
    assert ratios["lengths", 1.1] < 0.95


def test_an_slo_that_nothing_meets_rules_all_out() -> None:
    """A token a millisecond is beyond any bandwidth here: an empty ranking, each with its miss where it fits."""
    plan = find_plan(replace(QUESTION, slo=parse_slo("tpot_p50<=1ms")))

    assert not plan.ranking
    misses = [each.miss for each in plan.rejected if each.miss is not None]
    assert misses
    assert all(miss > 2 for miss in misses)


def test_a_rate_is_carried_by_replicas() -> None:
    """For ten times the best rate there are at least ten replicas, and the measure is dollars an hour."""
    plan = find_plan(replace(QUESTION, rate_per_s=50.0))

    assert plan.by.name == "usd_per_hour"
    for each, cost in zip(plan.ranking, plan.costs, strict=True):
        assert cost.replicas * each.rate_per_s >= 50.0


def test_the_finalists_run_the_whole_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stretch shorter than the trace, the first three rates are from all requests, and have intervals."""
    monkeypatch.setattr(planner, "STRETCH", 100)
    others = tuple(stretches(QUESTION.traffic, 3, 100))
    plan = find_plan(replace(QUESTION, others=others))

    assert [each.whole for each in plan.ranking[:3]] == [True] * 3
    assert all(each.summary.completed == len(QUESTION.traffic.requests) for each in plan.ranking[:3])
    assert any(not each.whole for each in plan.ranking) or len(plan.ranking) <= 3
    assert set(plan.intervals) == {0, 1, 2}
    for place, (low, high) in plan.intervals.items():
        assert low <= plan.ranking[place].rate_per_s <= high


def test_a_split_that_cannot_be_is_ruled_out() -> None:
    """40 heads do not divide over TP3, and cards without a known link do not split at all."""
    alone = replace(A100, name="alone", link=None)
    space = Space(model=LLAMA, accelerators=(A100, alone), counts=(3,), engines=("ideal",))
    plan = find_plan(replace(QUESTION, candidates=candidates(space), prices={}))
    reasons = [each.why for each in plan.rejected]

    assert all(isinstance(each, Rejected) for each in plan.rejected)
    assert any("40 query heads do not divide over TP3" in why for why in reasons)
    assert any("no link" in why for why in reasons)


def test_spread_of_two() -> None:
    """9 and 11: deviation 1.414, t with one degree 12.706, mean 10: 1.797."""
    assert relative_spread([9.0, 11.0]) == pytest.approx(12.706 * 2**0.5 / 10, rel=1e-4)


def test_accelerators_that_there_are_bound_the_replicas() -> None:
    """On three accelerators nothing that needs four is ranked, and each says why; nothing else is lost."""
    question = replace(QUESTION, rate_per_s=12.0, most_accelerators=3)
    found = find_plan(question)

    assert found.ranking
    assert all(cost.accelerators <= 3 for cost in found.costs)
    beyond = [each.why for each in found.rejected if "there are 3" in each.why]
    assert len(found.ranking) + len(found.rejected) == len(question.candidates)
    assert beyond


def test_what_no_batch_can_carry_is_not_simulated() -> None:
    """A thousand requests a second on three accelerators are beyond the arithmetic of all: no simulation is run."""
    found = find_plan(replace(QUESTION, rate_per_s=1000.0, most_accelerators=3))

    assert not found.ranking
    assert found.simulations == 0
    assert found.pruning.rejected[Reason.RATE] == found.pruning.pruned - found.pruning.rejected[Reason.MEMORY]
    assert all("even at its bound" in each.why for each in found.rejected if each.reason is Reason.RATE)


def test_only_the_top_are_ranked_and_the_others_counted(found: Planned) -> None:
    """The best two are those of the whole ranking; what is behind them is counted."""
    two = find_plan(replace(QUESTION, top=2))

    assert [each.rate_per_s for each in two.ranking] == [each.rate_per_s for each in found.ranking[:2]]
    assert two.behind == len(QUESTION.candidates) - 2 - len(two.rejected)
