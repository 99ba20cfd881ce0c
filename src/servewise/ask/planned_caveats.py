"""What a reader must know of a plan."""

from __future__ import annotations

from math import ceil

from servewise.caveats import Caveat
from servewise.plan.planner import FINALISTS, Planned
from servewise.plan.question import Question
from servewise.units import format_seconds

FEWEST_LIVES = 5  # of a request that a run must last to show a steady state


def caveats_of(question: Question, found: Planned) -> tuple[Caveat, ...]:
    """What a reader must know of the plan itself."""
    return (
        *(caveat for each in found.ranking[:FINALISTS] for caveat in each.caveats),
        *_without_price(question),
        *_on_a_stretch(question, found),
        *_even_replicas(found),
        *_too_few(question, found),
        *_not_sure_of_the_rate(question, found),
        *_nothing_keeps(question, found),
    )


def _without_price(question: Question) -> list[Caveat]:
    names = sorted({each.deployment.accelerator.name for each in question.candidates} - set(question.prices))
    message = f"no price is known for {', '.join(names)}: not ranked by cost"
    return [Caveat("unknown-price", message, "state one with --prices")] if names else []


def _on_a_stretch(question: Question, found: Planned) -> list[Caveat]:
    if all(each.whole for each in found.ranking):
        return []
    message = (
        f"the first {FINALISTS} ran all {len(question.traffic.requests)} requests; rates of those that ran only a "
        f"typical stretch of {found.stretch_requests} are scaled by {found.stretch_ratio:.2f}, the largest ratio "
        f"of all to stretch that was seen, and their latencies are the stretch's"
    )
    return [Caveat("stretch", message, "fewer candidates")]


def _even_replicas(found: Planned) -> list[Caveat]:
    if all(cost.replicas == 1 for cost in found.costs):
        return []
    message = "replicas are taken to share the load evenly, each share as bursty as the whole"
    return [Caveat("even-replicas", message, "a router by least load does better, by sessions often worse")]


def _nothing_keeps(question: Question, found: Planned) -> list[Caveat]:
    message = f"no candidate keeps {question.slo}"
    cure = "a looser SLO, faster or more accelerators, fewer bits"
    return [] if found.ranking else [Caveat("no-plan", message, cure)]


def _too_few(question: Question, found: Planned) -> list[Caveat]:
    """At its highest rate the winner's whole run should last for many requests, else no queue had time to grow."""
    if not found.ranking:
        return []
    best, requests = found.ranking[0], len(question.traffic.requests)
    lasts, takes = requests / best.rate_per_s, best.summary.e2e.p95
    if lasts >= FEWEST_LIVES * takes:
        return []
    message = (
        f"at {best.rate_per_s:.3g}/s the {requests} requests come within {format_seconds(lasts)}, where one takes "
        f"{format_seconds(takes)}: too few to show a queue that grows, so the highest rate is a bound from above"
    )
    needed = ceil(FEWEST_LIVES * takes * best.rate_per_s)
    return [Caveat("short-workload", message, f"a workload of at least {needed:,} requests")]


def _not_sure_of_the_rate(question: Question, found: Planned) -> list[Caveat]:
    """The winner carries the rate by its nominal figure, but not at the low end of its interval."""
    interval = found.intervals.get(0)
    if question.rate_per_s is None or interval is None:
        return []
    replicas = found.costs[0].replicas
    if replicas * interval[0] >= question.rate_per_s:
        return []
    message = (
        f"the winner carries {question.rate_per_s:.3g} requests/s by its middle figure only: the 95% interval of "
        f"{replicas} x {interval[0]:.3g} to {interval[1]:.3g} requests/s begins below it"
    )
    return [Caveat("rate-in-interval", message, _to_be_sure(question, found))]


def _to_be_sure(question: Question, found: Planned) -> str:
    """The best of those with an interval that carry the rate at its low end: that may be another than the winner."""
    sure = []
    for place, (low, _) in found.intervals.items():
        each = found.ranking[place]
        cost = question.cost(each.candidate, low) if low > 0 else None
        if cost is not None and question.affords(cost):
            sure.append((found.by.key(low, cost), place, cost))
    if not sure:
        return "measure before you buy"
    _, place, cost = min(sure, key=lambda each: each[:2])
    price = "" if cost.usd_per_hour is None else f", ${cost.usd_per_hour:,.2f} an hour"
    if place == 0:
        return f"{cost.replicas} replicas to be sure{price}"
    copies = f"{cost.replicas} replica{'s' if cost.replicas > 1 else ''} of {found.ranking[place].candidate.title}"
    return f"to be sure {copies}{price}: the best at the low ends of the intervals"
