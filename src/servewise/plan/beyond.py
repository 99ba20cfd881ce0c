"""Those that are behind the ranking, each with the best that it could be, and who of the ranked beats it even so.

Nothing here hangs on how many candidates were simulated: of one that was weighed to the end in any case its rate is
known, of any other that the last who is wanted is before it. So the rate at which it would come before that one is
above its own, as its bound is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from servewise.plan.candidates import Candidate
from servewise.plan.cost import Cost
from servewise.plan.ranking import Measure
from servewise.plan.screening import Screening
from servewise.plan.standing import Standing, dominator, standing
from servewise.plan.weighing import Reason, Rejected


class Shown(StrEnum):
    """What shows that a candidate is behind: its highest rate, its bound, or a simulation that it does not come up."""

    WEIGHED = "weighed"
    BOUND = "bound"
    SIMULATION = "simulation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """A candidate that is not ranked: at most ``most_per_s`` [requests/s], so no less than ``cost``.

    Of one that was weighed these are its own. ``dominated_by``: the place in the ranking of the first that is better
    whatever this one is within that; None: none is in everything.
    """

    candidate: Candidate
    most_per_s: float
    cost: Cost
    standing: Standing
    shown: Shown
    dominated_by: int | None


@dataclass(frozen=True, slots=True)
class Behind:
    """Who stands behind whom, once the search is over; ``full`` where as many as are wanted were found.

    Then the first ``kept`` of ``order`` are known to be the best, and of the others it is known that they are not.
    """

    screening: Screening
    order: Sequence[int]
    by: Measure
    full: bool

    def standings(self) -> tuple[Standing, ...]:
        """Of those that are ranked, best first."""
        return tuple(self._standing(index, self.screening.weighed(index).rate_per_s) for index in self._ranked())

    def beyond(self, kept: int | None) -> tuple[Beyond, ...]:
        """All others but those that are ruled out, the best first by what is known of them."""
        ranked = self.standings()
        found = [self._beyond(*each, ranked) for each in self._rates(kept)]
        return tuple(sorted(found, key=lambda each: (*self.by.key(each.most_per_s, each.cost), each.candidate.title)))

    def _rates(self, kept: int | None) -> Iterator[tuple[int, float, Shown]]:
        screening, last = self.screening, self.order[:kept]
        for index in last[len(self._ranked()) :]:
            yield index, screening.weighed(index).rate_per_s, Shown.WEIGHED
        for index in self._others(set(last)) if self.full else ():
            most = screening.most_behind(index, last[-1])
            yield index, most, Shown.BOUND if most == screening.bound(index) else Shown.SIMULATION

    def _others(self, known: set[int]) -> Iterator[int]:
        for index in self.screening.bounds:
            outcome = self.screening.outcomes[index]
            if index not in known and not (isinstance(outcome, Rejected) and outcome.reason is Reason.WHOLE):
                yield index

    def _beyond(self, index: int, most_per_s: float, shown: Shown, ranked: Sequence[Standing]) -> Beyond:
        candidate, own = self.screening.question.candidates[index], self._standing(index, most_per_s)
        return Beyond(
            candidate=candidate,
            most_per_s=most_per_s,
            cost=self.screening.question.cost(candidate, most_per_s),
            standing=own,
            shown=shown,
            dominated_by=dominator(own, ranked),
        )

    def _ranked(self) -> Sequence[int]:
        return self.order[: self.screening.question.top]

    def _standing(self, index: int, rate_per_s: float) -> Standing:
        question = self.screening.question
        cost = question.cost(question.candidates[index], rate_per_s)
        bound = self.screening.bounds.get(index)
        return standing(rate_per_s, cost, self.by, () if bound is None else bound.alone_s)
