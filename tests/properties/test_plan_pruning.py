"""A plan that prunes gives what one that simulates every candidate gives, to the last digit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.made import poisson

from servewise.ask.plan import plan
from servewise.executing.executor import Executor
from servewise.hardware.catalogue import load_accelerator
from servewise.metrics.slo import parse_slo
from servewise.modelspec.load import load_model
from servewise.plan import planner, screening
from servewise.plan.beyond import Shown
from servewise.plan.candidates import Space, candidates
from servewise.plan.planner import Planned, find_plan
from servewise.plan.question import Question
from servewise.plan.screening import Tally
from servewise.plan.traffic import stretches
from servewise.precision import FORMATS
from servewise.workload.load import load_workload

MODEL = load_model("llama-2-13b")
ACCELERATORS = {name: load_accelerator(name) for name in ("a100-80gb", "h100-sxm", "l40s", "t4")}


def some(*values: Any) -> st.SearchStrategy[Any]:
    """A few of them, as a tuple without repeats."""
    return st.lists(st.sampled_from(values), min_size=1, max_size=len(values), unique=True).map(tuple)


spaces = st.builds(
    Space,
    model=st.just(MODEL),
    accelerators=some(*ACCELERATORS).map(lambda names: tuple(ACCELERATORS[name] for name in names)),
    counts=some(1, 2),
    pipelines=st.sampled_from([(1,), (1,), (1, 2)]),
    weights=some(None, FORMATS["int8"]),
    engines=st.just(("ideal",)),
    policies=st.sampled_from([("continuous",), ("continuous", "dynamic"), ("dynamic", "vllm"), ("sglang",)]),
    slots=some(4, 32),
    batched_tokens=st.sampled_from([(64,), (None,)]),
    chunked_prefill=st.sampled_from([(True,), (False,)]),
)
questions = st.builds(
    Question,
    candidates=spaces.map(candidates),
    traffic=st.builds(poisson, st.just(40), seed=st.integers(0, 9)),
    slo=st.sampled_from(["ttft_p95<=2s, tpot_p95<=60ms", "ttft_p50<=200ms", "e2e_mean<=3s", "tpot_p99<=15ms"]).map(
        parse_slo
    ),
    prices=st.sampled_from([{}, {"a100-80gb": 1.5, "h100-sxm": 3.0, "t4": 0.3}, {"a100-80gb": 1.5, "l40s": 0.9}]),
    rate_per_s=st.none() | st.floats(0.5, 40),
    estimator=st.just("ideal"),
    top=st.integers(1, 6),
    most_accelerators=st.none() | st.sampled_from([2, 8]),
)


def told(found: Planned) -> dict[str, Any]:
    """All that a plan says, but for how many were pruned and simulated."""
    return {name: getattr(found, name) for name in Planned.__slots__ if name not in ("pruning", "simulations", "by")}


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(questions)
def test_pruning_changes_no_answer(question: Question) -> None:
    """Ranking, costs, intervals, what is ruled out and why, sensitivity: the same, on a stretch and then on all."""
    question = replace(question, others=tuple(stretches(question.traffic, 2, 20)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "STRETCH", 20)
        patch.setattr(screening, "ROUND", 2)
        pruned, all_of_them = find_plan(question), find_plan(replace(question, prunes=False))

    assert told(pruned) == told(all_of_them)
    assert pruned.simulations <= all_of_them.simulations
    assert not all_of_them.pruning.dominated + all_of_them.pruning.ended_early


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(questions)
def test_what_is_said_of_those_not_ranked_holds(question: Question) -> None:
    """Weighed to the end each carries no more and costs no less than was said, so who dominates it does so in truth.

    Nobody is left out: each candidate is ranked, not ranked or ruled out, once.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "STRETCH", 20)
        patch.setattr(screening, "ROUND", 2)
        found, every = find_plan(question), find_plan(replace(question, top=None))

    named = [each.candidate.title for part in (found.ranking, found.beyond, found.rejected) for each in part]
    assert sorted(named) == sorted(each.title for each in question.candidates)
    assert len(found.beyond) == found.behind
    assert len(found.standings) == len(found.ranking)
    rows = zip(every.ranking, every.costs, every.standings, strict=True)
    true = {each.candidate.title: (cost, standing) for each, cost, standing in rows}
    for each in found.beyond:
        if each.candidate.title not in true:  # it keeps the SLO at no rate, or needs more accelerators than there are
            continue
        cost, standing = true[each.candidate.title]
        assert standing.alone_s == each.standing.alone_s
        assert cost.rate_per_accelerator_per_s <= each.cost.rate_per_accelerator_per_s * (1 + 1e-9)
        assert standing.cost == pytest.approx(each.standing.cost) or standing.cost > each.standing.cost
        assert each.dominated_by is None or found.standings[each.dominated_by].dominates(standing)
        assert (each.shown is Shown.WEIGHED) <= (cost == each.cost)


@pytest.mark.slow
def test_a_real_grid_is_pruned_to_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibrated clocks on the Azure trace, 24 candidates: many are never simulated, and every printed figure stays."""
    options: dict[str, Any] = {
        "workload": load_workload("azure-conv", requests=120),
        "slo": "ttft_p95<=1s, tpot_p95<=50ms",
        "counts": 1,
        "weights": ["bf16", "fp8"],
        "slots": [64, 256],
        "max_batched_tokens": [512, 2048],
        "top": 1,
    }
    monkeypatch.setattr(screening, "ROUND", 4)
    found = [
        json.loads(plan("llama-3.1-8b", ["l4", "a100-80gb", "h100-sxm"], prune=prune, **options).dumps())
        for prune in (True, False)
    ]
    pruning, whole = (each["result"].pop("pruning") for each in found)
    simulations = [each["result"].pop("simulations") for each in found]

    assert found[0] == found[1]
    assert pruning["by_reason"]["dominated"] > found[0]["result"]["candidates"] / 3
    assert pruning["pruned"] + pruning["ended_early"] + pruning["weighed"] == found[0]["result"]["candidates"]
    assert whole["pruned"] == 0
    assert simulations[0] < simulations[1] / 2


def test_counts_do_not_depend_on_the_processes_and_add_up() -> None:
    """Two processes prune and simulate the very same candidates as one; what is told adds up at every moment."""
    space = Space(
        model=MODEL, accelerators=tuple(ACCELERATORS.values()), counts=(1, 2), engines=("ideal",), slots=(4, 8, 32)
    )
    question = Question(
        candidates=candidates(space),
        traffic=poisson(60),
        slo=parse_slo("ttft_p95<=2s, tpot_p95<=60ms"),
        prices=dict.fromkeys(ACCELERATORS, 1.0),
        estimator="ideal",
        top=1,
    )
    tallies: list[Tally] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screening, "ROUND", 2)
        patch.setattr("servewise.executing.executor.SMALL", 0)
        one = find_plan(question, tell=tallies.append)
        two = find_plan(question, Executor(processes=2))

    assert (one.pruning, one.simulations, told(one)) == (two.pruning, two.simulations, told(two))
    assert {each.pruned + each.simulated + each.left for each in tallies} == {len(question.candidates)}
    assert tallies[-1].left == 0
    assert tallies[-1].pruned == one.pruning.pruned > 0
