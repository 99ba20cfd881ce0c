"""A plan as CONTRACT's keys: ranking with reasons, what was ruled out, the recommendation or the closest."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf, isnan
from typing import Any

from servewise.ask.planned_beyond import alone_of, named, not_ranked
from servewise.ask.planned_deployment import deployment_of
from servewise.ask.rows import slo_rows
from servewise.metrics.percentiles import Interval
from servewise.plan.cost import Cost
from servewise.plan.explain import binding_sentence, binds, losing_sentence, tightest, winning_sentence
from servewise.plan.planner import Planned, Pruning
from servewise.plan.question import Question
from servewise.plan.standing import dominator
from servewise.plan.weighing import Rejected, Weighed


def result_of(question: Question, found: Planned, rate_per_s: float | None) -> dict[str, Any]:
    """The result of ``plan``; ``rate_per_s`` is the rate that was asked for, refused requests included."""
    return {
        "ranking": [_row(question, found, place) for place in range(len(found.ranking))],
        "rejected": [
            {
                "deployment": deployment_of(each.candidate),
                "reason": each.reason.value,
                "why": each.why,
                "slo_factor": each.miss,
            }
            for each in found.rejected
        ],
        "recommendation": _recommendation(question, found) if found.ranking else None,
        "closest": None if found.ranking else _closest(found),
        "sensitivity": [*_moves(found), *_more_load(question, found)],
        "slo": slo_rows(question.slo),
        "ranked_by": found.by.name,
        "rate_per_s": rate_per_s,
        "candidates": len(question.candidates),
        "behind": found.behind,
        "not_ranked": not_ranked(question, found),
        "pruning": pruning_of(found.pruning),
        "simulations": found.simulations,
        "requests": len(question.traffic.requests),
        "stretch_requests": found.stretch_requests,
    }


def pruning_of(pruning: Pruning) -> dict[str, Any]:
    """How many candidates bounds spared, by reason, and what became of the others."""
    return {
        "on": pruning.prunes,
        "pruned": pruning.pruned,
        "by_reason": {reason.value: count for reason, count in pruning.rejected.items()}
        | {"dominated": pruning.dominated},
        "ended_early": pruning.ended_early,
        "weighed": pruning.weighed,
    }


def _row(question: Question, found: Planned, place: int) -> dict[str, Any]:
    each, cost = found.ranking[place], found.costs[place]
    bound, _ = tightest(each, question.slo)
    interval = found.intervals.get(place)
    return {
        "deployment": deployment_of(each.candidate),
        "max_rate_per_s": each.rate_per_s,
        "ci95_max_rate_per_s": list(interval) if interval else None,
        "ttft_s": each.summary.ttft.to_json(),
        "tpot_s": each.summary.tpot.to_json(),
        "e2e_s": each.summary.e2e.to_json(),
        "usd_per_million_output_tokens": cost.usd_per_million_output_tokens,
        "usd_per_hour": cost.usd_per_hour,
        "accelerators": each.candidate.accelerators,
        "replicas": cost.replicas,
        "accelerators_in_all": cost.accelerators,
        "rate_per_accelerator_per_s": cost.rate_per_accelerator_per_s,
        "bound": binds(each),
        "slo_bound": f"{bound.metric}_{bound.percentile}",
        "resource": each.binding.resource,
        "saturation_per_s": [each.knee.low_per_s, each.knee.high_per_s],
        "mean_batch": each.binding.mean_batch,
        "kv_peak_share": each.binding.kv_peak,
        "meets_slo": True,
        "verified_on": "all requests" if each.whole else f"a stretch of {found.stretch_requests} requests, scaled",
        "alone_s": alone_of(question.slo, found.standings[place]),
        "dominated_by": named(found, dominator(found.standings[place], found.standings)),
        "why": _why(question, found, place),
    }


def _why(question: Question, found: Planned, place: int) -> str:
    each, cost = found.ranking[place], found.costs[place]
    if place == 0:
        return winning_sentence(each, cost, found.by, question.slo)
    return losing_sentence(each, cost, found.ranking[0], found.costs[0], found.by, question.slo)


def _recommendation(question: Question, found: Planned) -> dict[str, Any]:
    best, cost = found.ranking[0], found.costs[0]
    return {
        "deployment": deployment_of(best.candidate),
        "text": _advice(question, best, cost, found.intervals.get(0)),
        "binds": binding_sentence(best, question.slo),
        "numbers": _numbers(question, best, cost),
    }


def _advice(question: Question, best: Weighed, cost: Cost, interval: Interval | None) -> str:
    within = f" (95% {interval[0]:.3g} to {interval[1]:.3g})" if interval else ""
    copies = f"{cost.replicas} replicas of " if cost.replicas > 1 else ""
    price = cost.usd_per_million_output_tokens
    priced = "price unknown" if price is None else f"${price:,.3g} per million output tokens"
    for_rate = "" if question.rate_per_s is None else f" for {question.rate_per_s:.3g} requests/s"
    each = "each keeps" if cost.replicas > 1 else "keeps"
    return (
        f"{copies}{best.candidate.title}{for_rate}: {each} {question.slo} up to {best.rate_per_s:.3g} "
        f"requests/s{within}, at {priced}"
    )


def _numbers(question: Question, best: Weighed, cost: Cost) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"label": "highest rate of a replica", "value": best.rate_per_s, "unit": "per_s"},
        {"label": "replicas", "value": cost.replicas, "unit": ""},
        {"label": "accelerators in all", "value": cost.accelerators, "unit": ""},
        {"label": "cost per million output tokens", "value": cost.usd_per_million_output_tokens, "unit": "usd"},
        {"label": "cost per hour", "value": cost.usd_per_hour, "unit": "usd"},
    ]
    found += [
        {"label": f"{bound.metric} {bound.percentile}", "value": bound.value(best.summary), "unit": "s"}
        for bound in question.slo.bounds
    ]
    return [each for each in found if each["value"] is not None]


def _closest(found: Planned) -> dict[str, Any] | None:
    """The candidate that misses by the least; of those that do not fit none is near."""
    missing = [each for each in found.rejected if each.violation is not None]
    if not missing:
        return None
    nearest = min(missing, key=_by_miss)
    return {"deployment": deployment_of(nearest.candidate), "text": nearest.why, "slo_factor": nearest.miss}


def _by_miss(each: Rejected) -> tuple[float, str]:
    miss = each.miss
    return (inf if miss is None or isnan(miss) else miss, each.candidate.title)


def _moves(found: Planned) -> list[Mapping[str, Any]]:
    if not found.ranking:
        return []
    rate = found.ranking[0].rate_per_s
    return [
        {
            "input": each.change.input,
            "change": each.change.words,
            "max_rate_per_s": rate * each.ratio,
            "ratio": each.ratio,
        }
        for each in found.sensitivity
    ]


def _more_load(question: Question, found: Planned) -> list[Mapping[str, Any]]:
    """What 10% more or less load does to the replicas and the bill; a replica's highest rate does not move."""
    if question.rate_per_s is None or not found.ranking:
        return []
    best, cost = found.ranking[0], found.costs[0]
    rows: list[Mapping[str, Any]] = []
    for factor in (0.9, 1.1):
        replicas = max(1, ceil(question.rate_per_s * factor / best.rate_per_s - 1e-9))
        hourly = None if cost.usd_per_hour is None else cost.usd_per_hour / cost.replicas * replicas
        rows.append(
            {
                "input": f"rate ({replicas} replicas)",
                "change": f"{factor - 1:+.0%}",
                "max_rate_per_s": best.rate_per_s,
                "ratio": 1.0,
                "replicas": replicas,
                "usd_per_hour": hourly,
            }
        )
    return rows
