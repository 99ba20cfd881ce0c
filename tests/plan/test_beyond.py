"""What is said of candidates that are not ranked, against weighing every one of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.made import poisson

from servewise.hardware.catalogue import load_accelerator
from servewise.metrics.slo import parse_slo
from servewise.modelspec.load import load_model
from servewise.plan import screening
from servewise.plan.beyond import Shown
from servewise.plan.candidates import Space, candidates
from servewise.plan.explain import beyond_sentence
from servewise.plan.planner import Planned, find_plan
from servewise.plan.question import Question

SPACE = Space(
    model=load_model("llama-2-13b"),
    accelerators=tuple(map(load_accelerator, ("a100-80gb", "h100-sxm"))),
    counts=(1, 2),
    engines=("ideal",),
    slots=(4, 8, 32),
)
QUESTION = Question(
    candidates=candidates(SPACE),
    traffic=poisson(60),
    slo=parse_slo("ttft_p95<=2s, tpot_p95<=60ms"),
    prices={"a100-80gb": 1.5, "h100-sxm": 3.0},
    estimator="ideal",
    top=1,
)


@pytest.fixture(scope="module")
def found() -> Planned:
    """One of twelve ranked, the others pruned two at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screening, "ROUND", 2)
        return find_plan(QUESTION)


@pytest.fixture(scope="module")
def every() -> Planned:
    """All twelve weighed and ranked."""
    return find_plan(replace(QUESTION, top=None))


def test_nobody_is_better_than_is_said(found: Planned, every: Planned) -> None:
    """Of all eleven, however little was simulated: no more requests, no less cost than when they are weighed."""
    true = {each.candidate.title: each.rate_per_s for each in every.ranking}

    assert len(found.beyond) == found.behind == 11
    assert {each.shown for each in found.beyond} >= {Shown.WEIGHED, Shown.BOUND}
    for each in found.beyond:
        rate = true[each.candidate.title]
        cost = QUESTION.cost(each.candidate, rate).usd_per_million_output_tokens
        assert rate <= each.most_per_s * (1 + 1e-9)
        assert (each.cost.usd_per_million_output_tokens or 0) <= (cost or 0) * (1 + 1e-9)


def test_who_dominates_is_better_in_everything(found: Planned, every: Planned) -> None:
    """Fewer slots on the same accelerators are dominated; twice the accelerators, faster with a request alone, not."""
    winner = found.ranking[0].candidate
    by = {each.candidate.title: each for each in found.beyond}
    same = [each for each in by.values() if each.candidate.deployment.accelerator == winner.deployment.accelerator]

    fewer_slots = [each for each in same if each.candidate.accelerators == winner.accelerators]
    assert [each.dominated_by for each in fewer_slots] == [0, 0]
    assert {each.dominated_by for each in same if each.candidate.accelerators > winner.accelerators} == {None}
    true = {each.candidate.title: standing for each, standing in zip(every.ranking, every.standings, strict=True)}
    assert all(true[winner.title].dominates(true[each.candidate.title]) for each in fewer_slots)


def test_why_has_both_costs(found: Planned) -> None:
    """The sentence sets the least that it could cost against what the first costs, and says what shows it."""
    best, cost = found.ranking[0], found.costs[0]
    for each in found.beyond:
        why = beyond_sentence(each, best, cost, found.by, None)
        for of in (each.cost, cost):
            assert f"${of.usd_per_million_output_tokens:,.3g} per M output tokens" in why
        assert ("no batch" in why) == (each.shown is Shown.BOUND)


def test_too_few_accelerators_are_the_reason() -> None:
    """Where even the least that it takes is more than there are, that is said, and no cost."""
    plan = find_plan(replace(QUESTION, rate_per_s=20.0))
    each = max(plan.beyond, key=lambda each: each.cost.accelerators)
    needed = each.cost.accelerators
    why = beyond_sentence(each, plan.ranking[0], plan.costs[0], plan.by, needed - 1)

    assert why.endswith(f"{needed} accelerators are needed, and there are {needed - 1}")


def test_all_ranked_leaves_nobody(every: Planned) -> None:
    """With all ranked there is nobody else, and each has a standing."""
    assert not every.beyond
    assert len(every.standings) == len(every.ranking) == 12
