"""Those that a plan does not rank, as JSON: the best that each could be, and who of the ranked beats it even so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servewise.ask.planned_deployment import deployment_of
from servewise.metrics.slo import Slo
from servewise.plan.beyond import Beyond
from servewise.plan.explain import beyond_sentence
from servewise.plan.planner import Planned
from servewise.plan.question import Question
from servewise.plan.standing import Standing


def not_ranked(question: Question, found: Planned) -> list[dict[str, Any]]:
    """A row for each, the best first by what is known of it: its highest rate is no more, its cost no less."""
    return [_row(question, found, each) for each in found.beyond]


def _row(question: Question, found: Planned, each: Beyond) -> dict[str, Any]:
    return {
        "deployment": deployment_of(each.candidate),
        "most_rate_per_s": each.most_per_s,
        "least_usd_per_million_output_tokens": each.cost.usd_per_million_output_tokens,
        "least_usd_per_hour": each.cost.usd_per_hour,
        "least_accelerators_in_all": each.cost.accelerators,
        "alone_s": alone_of(question.slo, each.standing),
        "shown_by": each.shown.value,
        "dominated_by": named(found, each.dominated_by),
        "why": beyond_sentence(each, found.ranking[0], found.costs[0], found.by, question.most_accelerators),
    }


def alone_of(slo: Slo, standing: Standing) -> dict[str, float]:
    """What the SLO looks at, with each request alone, at least [s]."""
    names = (f"{each.metric}_{each.percentile}" for each in slo.bounds)
    return dict(zip(names, standing.alone_s, strict=False))


def named(found: Planned, place: int | None) -> Mapping[str, Any] | None:
    """The one of the ranked that dominates: its number, from 1, and its title."""
    return None if place is None else {"place": place + 1, "title": found.ranking[place].candidate.title}
