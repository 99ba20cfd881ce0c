"""The plan: candidates weighed on a typical stretch of the traffic, the best of them again on all of it.

1. Every candidate is bounded: memory, then the SLO with each request alone (``bounds``), then the rate that no batch
   could pass (``throughput``); nothing is simulated.
2. Best bounds first, candidates are searched for their highest rate (``search``) on a typical stretch of the traffic,
   until no other can come among those that are wanted (``screening``).
3. While one of the ``FINALISTS`` best has not run the whole traffic, it does; then all are ranked anew, the others'
   rates scaled by the largest ratio seen of whole to stretch (mostly below 1: a stretch holds fewer bursts). So a
   stretch decides who is looked at, never who wins.
4. The finalists get an interval, from other stretches (or seeds) and from draws of the estimator's coefficients.
5. The winner is weighed again with inputs 10% off (``sensitivity``).

Each step is a list of independent tasks for ``Workers``; what is done does not depend on who does it.
Without pruning every candidate is simulated, and all that ``Planned`` holds but its counts is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

from servewise.executing.executor import Executor
from servewise.executing.workers import Workers
from servewise.metrics.percentiles import Interval
from servewise.metrics.student import t_quantile
from servewise.plan.beyond import Behind, Beyond
from servewise.plan.cost import Cost
from servewise.plan.question import Question
from servewise.plan.ranking import Measure, measure
from servewise.plan.screening import Screening, Tally, Tell
from servewise.plan.sensitivity import CHANGES, Moved
from servewise.plan.standing import Standing
from servewise.plan.task import FAST, SLOW, Changed, Task, Varied, changed, task_of, varied
from servewise.plan.weighing import Possible, Reason, Rejected, Weighed

FINALISTS = 3
STRETCH = 2_000  # requests
RUNS = 8  # of a candidate's search, about
HERE = Executor()
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """How the candidates went: out before a simulation, by reason; as ``dominated``, because their bound lies behind.

    ``ended_early``: their search ended once it was known that they lie behind. ``weighed``: their highest rate was
    found, or that there is none. ``prunes`` says whether candidates were spared at all.
    """

    prunes: bool
    rejected: Mapping[Reason, int]
    dominated: int
    ended_early: int
    weighed: int

    @property
    def pruned(self) -> int:
        """Candidates that were never simulated."""
        return sum(self.rejected.values()) + self.dominated if self.prunes else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The ranking, best first, with the cost of each and the interval of the finalists' highest rates [requests/s].

    With ``top`` asked for it holds as many, and ``rejected`` those that bounds rule out, or that failed on the whole
    traffic; ``beyond`` holds the others, ``behind`` counts them. With fewer than that found ``rejected`` holds all
    others. ``standings`` are of the ranking, one for each.
    """

    ranking: tuple[Weighed, ...]
    costs: tuple[Cost, ...]
    intervals: Mapping[int, Interval]
    rejected: tuple[Rejected, ...]
    by: Measure
    pruning: Pruning
    behind: int = 0
    sensitivity: tuple[Moved, ...] = ()
    stretch_requests: int = 0
    stretch_ratio: float = 1.0
    simulations: int = 0
    standings: tuple[Standing, ...] = ()
    beyond: tuple[Beyond, ...] = ()


def find_plan(
    question: Question, executor: Executor = HERE, progress: Progress | None = None, tell: Tell | None = None
) -> Planned:
    """The plan that answers ``question``; ``tell`` hears how many are pruned, simulated and left."""
    by = measure(priced=question.any_price, rate_asked=question.rate_per_s is not None)
    kept = None if question.top is None else max(question.top, FINALISTS)
    task = task_of(question, STRETCH)
    simulated = RUNS * len(task.stretch.requests) * len(question.candidates) + len(question.traffic.requests)
    with Workers(task, executor.worthwhile(simulated), of=question) as workers:
        screening = Screening(workers, question, by, kept, _telling(len(question.candidates), progress, tell))
        screening.begin()
        order = _verified(screening)
        intervals = _intervals(workers, screening, order[:FINALISTS])
        moves = tuple(workers.each(changed, _changes(screening, order)))
    full = kept is not None and len(order) >= kept
    best = [screening.weighed(index) for index in order[: question.top]]
    rejected = _rejected(question, screening, order, full=full)
    behind = Behind(screening, order, by, full)
    return Planned(
        ranking=tuple(best),
        costs=tuple(question.cost(each.candidate, each.rate_per_s) for each in best),
        intervals={rank: intervals[index] for rank, index in enumerate(order[: question.top]) if index in intervals},
        rejected=rejected,
        by=by,
        pruning=_pruning(question, screening),
        behind=len(question.candidates) - len(best) - len(rejected),
        sensitivity=moves,
        stretch_requests=len(task.stretch.requests),
        stretch_ratio=screening.ratio,
        simulations=screening.runs,
        standings=behind.standings(),
        beyond=behind.beyond(kept),
    )


def _telling(total: int, progress: Progress | None, tell: Tell | None) -> Tell:
    def told(tally: Tally) -> None:
        if tell is not None:
            tell(tally)
        if progress is not None:
            progress(total - tally.left, total)

    return told


def _verified(screening: Screening) -> list[int]:
    """The candidates best first, once the finalists are those that ran the whole traffic."""
    while True:
        order = screening.best()
        todo = [index for index in order[:FINALISTS] if not screening.weighed(index).whole]
        if not todo:
            return order
        screening.run_whole(todo)


def _rejected(question: Question, screening: Screening, order: Sequence[int], *, full: bool) -> tuple[Rejected, ...]:
    """Those that are out; where the ranking is full, without those that only a simulation could tell from the
    others."""
    found = [each for each in screening.outcomes.values() if isinstance(each, Rejected)]
    if full:
        return tuple(each for each in found if each.reason is not Reason.SIMULATED)
    ranked = set(order)
    beyond = [each for index, each in screening.outcomes.items() if isinstance(each, Weighed) and index not in ranked]
    return (*found, *(_beyond(question, each) for each in beyond))


def _beyond(question: Question, each: Weighed) -> Rejected:
    cost = question.cost(each.candidate, each.rate_per_s)
    why = f"{cost.accelerators} accelerators are needed, {cost.replicas} x {each.candidate.accelerators} at"
    why = f"{why} {each.rate_per_s:.3g} requests/s a replica; there are {question.most_accelerators}"
    return Rejected(candidate=each.candidate, why=why, reason=Reason.SIMULATED)


def _pruning(question: Question, screening: Screening) -> Pruning:
    out = list(screening.outcomes.values())
    reasons = [each.reason for each in out if isinstance(each, Rejected)]
    possible = [each.runs for each in out if isinstance(each, Possible)]
    return Pruning(
        prunes=question.prunes,
        rejected={each: reasons.count(each) for each in Reason if not each.simulated},
        dominated=possible.count(0),
        ended_early=len(possible) - possible.count(0),
        weighed=sum(isinstance(each, Weighed) for each in out) + sum(each.simulated for each in reasons),
    )


def _changes(screening: Screening, order: Sequence[int]) -> list[Changed]:
    first = order[:1]
    return [
        Changed(index, number, screening.weighed(index).stretch_rate_per_s)
        for index in first
        for number in range(len(CHANGES))
    ]


def _intervals(workers: Workers[Task], screening: Screening, finalists: Sequence[int]) -> dict[int, Interval]:
    """95% intervals: as far as the slow and the fast clock lie away, and t s / sqrt(n) of other stretches."""
    others, requests = screening.question.others, screening.question.traffic.requests
    kinds = [("clock", SLOW), ("clock", FAST)] + [("other", other) for other in range(len(others))]
    tasks = [Varied(index, *kind, screening.weighed(index).stretch_rate_per_s) for index in finalists for kind in kinds]
    rates = dict(zip(tasks, workers.each(varied, tasks), strict=True))
    share = len(others[0].requests) / len(requests) if others else 1.0
    found = {}
    for index in finalists:
        each = screening.weighed(index)
        slow, fast, *elsewhere = (rates[task] for task in tasks if task.place == index)
        found[index] = _interval(each.rate_per_s, each.stretch_rate_per_s, slow, fast, elsewhere, share)
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
