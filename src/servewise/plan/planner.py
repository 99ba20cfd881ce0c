"""The plan: candidates weighed on a typical stretch of the traffic, the best of them again on all of it.

1. Every candidate is screened: memory, then the SLO with each request alone (``bounds``), neither simulated; those that
   pass are searched for their highest rate (``search``) on a typical stretch of the traffic.
2. Best first: while one of the ``FINALISTS`` best has not run the whole traffic, it does; then all are ranked anew, the
   others' rates scaled by the largest ratio seen of whole to stretch (mostly below 1: a stretch holds fewer bursts). So
   a stretch decides who is looked at, never who wins.
3. The finalists get an interval, from other stretches (or seeds) and from draws of the estimator's coefficients.
4. The winner is weighed again with inputs 10% off (``sensitivity``).

Each step is a list of independent tasks for ``Workers``; what is done does not depend on who does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot, sqrt

from servewise.executing.executor import Executor
from servewise.executing.workers import Workers
from servewise.metrics.percentiles import Interval
from servewise.metrics.slo import Slo
from servewise.metrics.student import t_quantile
from servewise.plan.bracket import bracket
from servewise.plan.candidates import Candidate
from servewise.plan.cost import Cost, cost_of
from servewise.plan.ranking import Measure, measure, ranked
from servewise.plan.search import PRECISION, highest_rate
from servewise.plan.sensitivity import CHANGES, Moved, moved
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic, typical
from servewise.plan.weighing import Rejected, Weighed, admitted, server_of, weigh

FINALISTS = 3
STRETCH = 2_000  # requests
SLOW, FAST = range(2)
RUNS = 8  # of a candidate's search, about
SCREENING = 0.03  # precision of the search on a stretch
HERE = Executor()
Progress = Callable[[int, int], None]
Outcome = Weighed | Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked. ``others`` are other stretches or seeds of the traffic, for intervals.

    ``prices`` are in dollars per accelerator-hour by accelerator name; one that is missing is not known.
    """

    candidates: tuple[Candidate, ...]
    traffic: Traffic
    slo: Slo
    prices: Mapping[str, float]
    rate_per_s: float | None = None
    estimator: str | None = None
    hash_block_tokens: int | None = None
    others: tuple[Traffic, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The ranking, best first, with the cost of each and the interval of the finalists' highest rates [requests/s]."""

    ranking: tuple[Weighed, ...]
    costs: tuple[Cost, ...]
    intervals: Mapping[int, Interval]
    rejected: tuple[Rejected, ...]
    by: Measure
    sensitivity: tuple[Moved, ...] = ()
    stretch_requests: int = 0
    stretch_ratio: float = 1.0
    simulations: int = field(default=0)


def find_plan(question: Question, executor: Executor = HERE, progress: Progress | None = None) -> Planned:
    """The plan that answers ``question``."""
    by = measure(priced=_any_price(question), rate_asked=question.rate_per_s is not None)
    stretch = typical(question.traffic, STRETCH)
    task = _Task(question=question, stretch=stretch)
    simulated = RUNS * len(stretch.requests) * len(question.candidates) + len(question.traffic.requests)
    with Workers(task, executor.worthwhile(simulated)) as workers:
        screened = workers.each(_screen, range(len(question.candidates)), progress)
        outcomes = dict(enumerate(screened))
        ratio = _verify(workers, task, outcomes, by)
        order = _order(question, outcomes, by)
        intervals = _intervals(workers, question, outcomes, order[:FINALISTS])
        changes = (
            [(order[0], each, _weighed(outcomes[order[0]]).stretch_rate_per_s) for each in range(len(CHANGES))]
            if order
            else []
        )
        moves = tuple(workers.each(_changed, changes))
    best = [_weighed(outcomes[index]) for index in order]
    return Planned(
        ranking=tuple(best),
        costs=tuple(cost(question, each) for each in best),
        intervals={rank: intervals[index] for rank, index in enumerate(order) if index in intervals},
        rejected=tuple(each for each in outcomes.values() if isinstance(each, Rejected)),
        by=by,
        sensitivity=moves,
        stretch_requests=len(stretch.requests),
        stretch_ratio=ratio,
        simulations=sum(each.runs for each in outcomes.values() if isinstance(each, Weighed)),
    )


def cost(question: Question, found: Weighed) -> Cost:
    """What ``found`` costs for the question's rate, or at its own highest."""
    return cost_of(
        max_rate_per_s=found.rate_per_s,
        mean_output_tokens=question.traffic.mean_output_tokens,
        accelerators=found.candidate.accelerators,
        usd_per_accelerator_hour=question.prices.get(found.candidate.deployment.accelerator.name),
        rate_per_s=question.rate_per_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What every worker holds."""

    question: Question
    stretch: Traffic


def _any_price(question: Question) -> bool:
    return any(each.deployment.accelerator.name in question.prices for each in question.candidates)


def _weighed(outcome: Outcome) -> Weighed:
    assert isinstance(outcome, Weighed), outcome
    return outcome


def _order(question: Question, outcomes: Mapping[int, Outcome], by: Measure) -> list[int]:
    """The indices of the weighed candidates, best first."""
    index = {id(each): number for number, each in outcomes.items()}
    weighed = [each for each in outcomes.values() if isinstance(each, Weighed)]
    return [index[id(each)] for each in ranked(weighed, lambda found: cost(question, found), by)]


def _verify(workers: Workers[_Task], task: _Task, outcomes: dict[int, Outcome], by: Measure) -> float:
    """Run the whole traffic for the finalists until the finalists are those that ran it.

    Returns the largest ratio of a whole rate to a stretch's among them, by which the others' rates are scaled.
    """
    ratio = 1.0
    while True:
        top = _order(task.question, outcomes, by)[:FINALISTS]
        todo = [index for index in top if not _weighed(outcomes[index]).whole]
        if not todo:
            return ratio
        tasks = [(index, _weighed(outcomes[index]).stretch_rate_per_s, ratio) for index in todo]
        outcomes.update(zip(todo, workers.each(_whole, tasks), strict=True))
        ratio = _largest_ratio(outcomes.values())
        outcomes.update({index: _scaled(each, ratio) for index, each in outcomes.items()})


def _largest_ratio(outcomes: Iterable[Outcome]) -> float:
    ran = [each for each in outcomes if isinstance(each, Weighed) and each.whole]
    return max((each.rate_per_s / each.stretch_rate_per_s for each in ran), default=1.0)


def _scaled(outcome: Outcome, ratio: float) -> Outcome:
    """A candidate that ran a stretch only, with the rate that the best of those that ran both would make of it."""
    if isinstance(outcome, Rejected) or outcome.whole:
        return outcome
    return replace(outcome, rate_per_s=outcome.stretch_rate_per_s * ratio)


def _intervals(
    workers: Workers[_Task], question: Question, outcomes: Mapping[int, Outcome], finalists: Sequence[int]
) -> dict[int, Interval]:
    """95% intervals: as far as the slow and the fast clock lie away, and t s / sqrt(n) of other stretches."""
    kinds = [("clock", SLOW), ("clock", FAST)] + [("other", other) for other in range(len(question.others))]
    tasks = [(index, *kind, _weighed(outcomes[index]).stretch_rate_per_s) for index in finalists for kind in kinds]
    rates = dict(zip(tasks, workers.each(_replicate, tasks), strict=True))
    share = len(question.others[0].requests) / len(question.traffic.requests) if question.others else 1.0
    found = {}
    for index in finalists:
        each = _weighed(outcomes[index])
        nominal = each.stretch_rate_per_s
        slow, fast = (rates[index, "clock", clock, nominal] for clock in (SLOW, FAST))
        others = [rates[index, "other", other, nominal] for other in range(len(question.others))]
        found[index] = _interval(each.rate_per_s, nominal, slow, fast, others, share)
    return found


def _interval(rate: float, nominal: float, slow: float, fast: float, others: Sequence[float], share: float) -> Interval:
    sampling = relative_spread(others) * sqrt(share)
    below = max(0.0, 1 - min(slow, fast) / nominal) if nominal else 1.0
    above = max(0.0, max(slow, fast) / nominal - 1) if nominal else 0.0
    return max(0.0, rate * (1 - hypot(below, sampling))), rate * (1 + hypot(above, sampling))


def relative_spread(values: Sequence[float]) -> float:
    """t x standard deviation / mean of ``values`` at 95%; 0 for fewer than two.

    >>> round(relative_spread([9.0, 11.0]), 2)
    1.8
    """
    middle = sum(values) / len(values) if values else 0.0
    if len(values) < 2 or middle == 0:
        return 0.0
    deviation = sqrt(sum((each - middle) ** 2 for each in values) / (len(values) - 1))
    return t_quantile(0.975, len(values) - 1) * deviation / middle


def _server(task: _Task, index: int) -> Server:
    question = task.question
    server = server_of(question.candidates[index], question.estimator, question.hash_block_tokens)
    assert isinstance(server, Server), index
    return server


def _screen(task: _Task, index: int) -> Outcome:
    question, candidate = task.question, task.question.candidates[index]
    server = admitted(candidate, question.traffic, question.slo, question.estimator, question.hash_block_tokens)
    if isinstance(server, Rejected):
        return server
    whole = task.stretch is question.traffic
    precision = PRECISION if whole else SCREENING
    return weigh(candidate, server, task.stretch, question.slo, precision=precision, whole=whole)


def _whole(task: _Task, of: tuple[int, float, float]) -> Outcome:
    index, on_stretch, ratio = of
    question = task.question
    return weigh(
        question.candidates[index],
        _server(task, index),
        question.traffic,
        question.slo,
        guess_per_s=on_stretch * ratio,
        stretch_rate_per_s=on_stretch,
        whole=True,
    )


def _replicate(task: _Task, of: tuple[int, str, int, float]) -> float:
    index, kind, number, guess = of
    question, server = task.question, _server(task, index)
    if kind == "other":
        return highest_rate(server, question.others[number], question.slo, guess).rate_per_s
    deployment = question.candidates[index].deployment
    clocks = bracket(deployment, question.estimator, server, question.traffic.requests, question.seed)
    if clocks is None:
        return guess
    server = server.timed_by(clocks.slow if number == SLOW else clocks.fast)
    return highest_rate(server, task.stretch, question.slo, guess).rate_per_s


def _changed(task: _Task, of: tuple[int, int, float]) -> Moved:
    index, number, before = of
    question = task.question
    return moved(
        question.candidates[index],
        CHANGES[number],
        before,
        task.stretch,
        question.slo,
        question.estimator,
        question.hash_block_tokens,
    )
