"""The best candidates found without weighing all: best bounds first, until no other can come among them.

A candidate's bound (``throughput``: on the typical stretch its rate is below it) gives a bound below its cost, since
the key that candidates are ranked by never grows with the rate. Once as many are weighed as are wanted, one whose
bound is behind the last of them cannot come among them: it is not simulated, or its search ends when it is known to be
behind. The first ``kept`` of ``best`` are therefore those of weighing every candidate, in the same order with the same
numbers; what stands behind them may be missing. That holds for any ``ratio`` by which rates on the stretch are scaled,
at which it asks anew.

Candidates are weighed in rounds of ``ROUND``, whatever the number of processes, so that the counts do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from servewise.executing.workers import Workers
from servewise.plan.question import Question
from servewise.plan.ranking import Key, Measure
from servewise.plan.task import OnWhole, Outcome, Task, Wanted, bound, on_whole, screened, tried
from servewise.plan.weighing import Possible, Reason, Rejected, Weighed

ROUND = 32
HALVINGS = 40
ROUNDING = 1e-9
MARGIN = 1e-6
Place = tuple[Key, str]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many candidates are out without a simulation, how many were simulated, how many may have to be yet."""

    pruned: int
    simulated: int
    left: int

    def __str__(self) -> str:
        """E.g. ``812 pruned, 210 simulated, 978 left``."""
        return f"{self.pruned:,} pruned, {self.simulated:,} simulated, {self.left:,} left"


Tell = Callable[[Tally], None]


class Screening:
    """What is known of each candidate. ``kept`` of the best are wanted, None: all. ``runs`` counts the simulations.

    ``bounds`` are of those that no bound rules out, as they were before any simulation.
    """

    def __init__(self, workers: Workers[Task], question: Question, by: Measure, kept: int | None, tell: Tell) -> None:
        self._workers, self.question, self._by, self._kept, self._tell = workers, question, by, kept, tell
        self.outcomes: dict[int, Outcome] = {}
        self.bounds: dict[int, Possible] = {}
        self.ratio = 1.0
        self.runs = 0
        self._simulated: set[int] = set()
        self._titles = [each.title for each in question.candidates]

    def begin(self) -> None:
        """Bound every candidate; where nothing is to be pruned, try those that a bound rules out all the same."""
        total = len(self.question.candidates)
        for index, outcome in enumerate(self._workers.each(bound, range(total))):
            self.outcomes[index] = outcome
            if isinstance(outcome, Possible):
                self.bounds[index] = outcome
            self._tell(Tally(self._ruled_out(), 0, total - self._ruled_out()))
        if not self.question.prunes:
            self._try_all()

    def _try_all(self) -> None:
        """A candidate that does what a bound says it cannot shows that the bound is wrong, and is ranked."""
        question = self.question
        doubted = [index for index, each in self.outcomes.items() if _by_time(each)]
        for index, outcome in zip(doubted, self._workers.each(tried, doubted), strict=True):
            self._count(index, outcome)
            if isinstance(outcome, Weighed) and question.affords(question.cost(outcome.candidate, outcome.rate_per_s)):
                self.outcomes[index] = outcome

    def best(self) -> list[int]:
        """The candidates that were weighed, best first; the first ``kept`` are those that weighing all would give."""
        while opened := self._open(last := self._last()):
            todo = [self._wanted(index, last) for _, index in opened[:ROUND]]
            for done, outcome in enumerate(self._workers.each(screened, todo), start=1):
                self._count(todo[done - 1].place, outcome)
                self.outcomes[todo[done - 1].place] = self._scaled(outcome)
                self._say(len(opened) - done)
        self._say(0)
        return self._order()

    def run_whole(self, indices: list[int]) -> None:
        """Run the whole traffic for these; then the others' rates are scaled by the largest ratio seen."""
        tasks = [OnWhole(index, self.weighed(index).stretch_rate_per_s, self.ratio) for index in indices]
        for index, outcome in zip(indices, self._workers.each(on_whole, tasks), strict=True):
            self._count(index, outcome)
            self.outcomes[index] = outcome
        ran = [each for each in self.outcomes.values() if isinstance(each, Weighed) and each.whole]
        self.ratio = max((each.rate_per_s / each.stretch_rate_per_s for each in ran), default=1.0)
        self.outcomes = {index: self._scaled(each) for index, each in self.outcomes.items()}

    def weighed(self, index: int) -> Weighed:
        """What was found of a candidate that was weighed."""
        outcome = self.outcomes[index]
        assert isinstance(outcome, Weighed), outcome
        return outcome

    def most_behind(self, index: int, other: int) -> float:
        """The highest rate at which ``index`` would stay behind ``other``, which was weighed, or beyond what is there.

        Its bound, where it stays so even there. Of one that no bound rules out, which hangs on no other simulation.
        """
        last, most = self._place(other, self.weighed(other).rate_per_s), self._at_most(self.bounds[index])

        def behind(rate_per_s: float) -> bool:
            cost = self.question.cost(self.question.candidates[index], rate_per_s)
            return self._place(index, rate_per_s) > last or not self.question.affords(cost)

        return most if behind(most) else _highest(behind, most)

    def bound(self, index: int) -> float:
        """The rate that no batch of a candidate could pass."""
        return self._at_most(self.bounds[index])

    def _count(self, index: int, outcome: Outcome) -> None:
        self.runs += outcome.runs
        self._simulated.add(index)

    def _say(self, left: int) -> None:
        simulated = len(self._simulated)
        self._tell(Tally(len(self.outcomes) - simulated - left, simulated, left))

    def _ruled_out(self) -> int:
        return sum(isinstance(each, Rejected) for each in self.outcomes.values())

    def _scaled(self, outcome: Outcome) -> Outcome:
        """A candidate that ran a stretch only, with the rate that the best of those that ran both would make of it."""
        if not isinstance(outcome, Weighed) or outcome.whole:
            return outcome
        return replace(outcome, rate_per_s=outcome.stretch_rate_per_s * self.ratio)

    def _open(self, last: Place | None) -> list[tuple[Place, int]]:
        """Those that may come before ``last``, the best bounds first."""
        found = []
        for index, each in self.outcomes.items():
            if isinstance(each, Possible):
                most = self._at_most(each)
                place = self._place(index, most)
                if last is None or (place < last and self.question.affords(self.question.cost(each.candidate, most))):
                    found.append((place, index))
        return sorted(found)

    def _last(self) -> Place | None:
        """The place of the last that is wanted; None while fewer are known, or all are wanted."""
        places = sorted(self._place(index, each.rate_per_s) for index, each in self._affordable().items())
        if self._kept is None or not self.question.prunes or len(places) < self._kept:
            return None
        return places[self._kept - 1]

    def _order(self) -> list[int]:
        found = self._affordable()
        return sorted(found, key=lambda index: self._place(index, found[index].rate_per_s))

    def _affordable(self) -> dict[int, Weighed]:
        question = self.question
        return {
            index: each
            for index, each in self.outcomes.items()
            if isinstance(each, Weighed) and question.affords(question.cost(each.candidate, each.rate_per_s))
        }

    def _place(self, index: int, rate_per_s: float) -> Place:
        cost = self.question.cost(self.question.candidates[index], rate_per_s)
        return self._by.key(rate_per_s, cost), self._titles[index]

    def _at_most(self, of: Possible) -> float:
        return of.most_per_s * self.ratio * (1 + ROUNDING)

    def _wanted(self, index: int, last: Place | None) -> Wanted:
        """With the rate on the stretch up to which a candidate stays behind ``last``, found by halving."""
        each = self.outcomes[index]
        assert isinstance(each, Possible), each
        if last is None:
            return Wanted(index, 0.0, each.physical_per_s)
        low = _highest(lambda rate: self._place(index, rate) > last, self._at_most(each))
        return Wanted(index, low * (1 - MARGIN) / self.ratio, each.physical_per_s)


def _highest(stays: Callable[[float], bool], most: float) -> float:
    """The highest rate below ``most`` that ``stays``, as all below it do and ``most`` does not, by halving."""
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if stays(middle) else (low, middle)
    return low


def _by_time(outcome: Outcome) -> bool:
    """Whether a bound on time rules it out, and not what it is made of."""
    return isinstance(outcome, Rejected) and outcome.reason in (Reason.ALONE, Reason.RATE)
