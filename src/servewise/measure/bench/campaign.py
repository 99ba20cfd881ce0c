"""All runs of a measurement: conditions in random order, repeat after repeat, until there are enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from servewise.errors import RunFailed, ServewiseError
from servewise.measure.bench import enough
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.measured import Measured
from servewise.measure.bench.order import block
from servewise.measure.bench.search import Knee, Search, Tried
from servewise.metrics.slo import Slo
from servewise.metrics.summary import pool

RunOne = Callable[[Condition, int], Measured]
MOST_FAILED = 0.01  # of the requests: a level at which more fail does not hold, however fast the others were


@dataclass(slots=True)
class Campaign:
    """The runs so far. ``ended`` is "whole", or how the run ended that was the last; ``reason`` says it in words."""

    run_one: RunOne
    runs: list[Measured] = field(default_factory=list)
    ended: str = "whole"
    reason: str = ""

    def of(self, condition: Condition) -> list[Measured]:
        """The runs of ``condition``, in the order in which they were made."""
        return [each for each in self.runs if each.condition == condition]

    def conditions(self) -> list[Condition]:
        """The conditions that have a run, in ascending order of their load."""
        return sorted({each.condition for each in self.runs}, key=lambda each: (each.kind, each.value))

    def repeat(self, conditions: Sequence[Condition], repeats: int, seed: int, within: float | None = None) -> None:
        """Every condition ``repeats`` times, or until the intervals are ``within`` (see ``enough``), 20 at most."""
        most = repeats if within is None else max(repeats, enough.MOST)
        least = repeats if within is None else max(repeats, enough.FEWEST)
        for number in range(most):
            left = [each for each in conditions if number < least or not self._is_enough(each, within)]
            for condition in block(left, seed, number):
                if not self._run(condition, number):
                    return

    def search(self, kind: str, first: float, slo: Slo, repeats: int) -> Knee:
        """The highest level of ``kind`` (rate or concurrency) that keeps ``slo``, from ``first`` on."""
        whole = kind == "concurrency"

        def tried(level: float) -> Tried:
            condition = Condition(kind="concurrency" if whole else "rate", value=level)
            if not all(self._run(condition, number) for number in range(repeats)):
                raise _EndedError
            runs = self.of(condition)
            kept = sum(each.holds(slo, MOST_FAILED) for each in runs)
            held = 2 * kept > len(runs) and slo.holds(pool([each.summary for each in runs]))
            alone = all(each.sending.most_open <= 1 for each in runs)
            return Tried(level, kept, len(runs), held, alone)

        search = Search(tried, whole=whole)
        try:
            return search.run(first)
        except _EndedError:
            return search.knee()

    def _run(self, condition: Condition, number: int) -> bool:
        """One run; whether the next may follow."""
        try:
            found = self.run_one(condition, number)
        except KeyboardInterrupt:
            self.ended, self.reason = "interrupted", "interrupted by the user"
            return False
        except ServewiseError as error:
            if not self.runs:
                raise
            self.ended, self.reason = ("server" if isinstance(error, RunFailed) else "disk"), str(error)
            return False
        self.runs.append(found)
        self.ended, self.reason = found.ended, found.reason
        return found.ended == "whole"

    def _is_enough(self, condition: Condition, within: float | None) -> bool:
        return enough.enough([each.summary for each in self.of(condition)], inf if within is None else within)


class _EndedError(Exception):
    """A run ended before its time, and the search with it."""
