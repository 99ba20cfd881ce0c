"""What rows of simulated runs have in common, whatever serves them: the load, the replicates, where runs are kept."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from servewise.ask.long_runs import is_long
from servewise.ask.run import KeptRun
from servewise.ask.serving import Door, Load, source_of, users_of
from servewise.conditions import Conditions
from servewise.executing.executor import Executor
from servewise.metrics.slo import Slo
from servewise.records.origin import Origin
from servewise.simulate.arrivals import Arrivals
from servewise.workload.traces.trace import Trace

NOMINAL, SLOW, FAST = range(3)
Replicate = tuple[int, int]  # which clock, how far the seed is from the first
Task = tuple[int, float, int, int]  # which servers, the rate, the replicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Rows of ``replicates`` each, of one ``workload`` at a rate of its own; ``requests``: how many one run has.

    ``words`` say what serves each kind of row. ``several``: there is more than one row, so ``run_dir`` holds a folder
    for each. ``telling``: where long runs tell how far they are.
    """

    replicates: tuple[Replicate, ...]
    workload: Load
    seed: int
    longest: int | None
    requests: int
    slo: Slo | None
    conditions: Conditions
    words: tuple[str, ...]
    run_dir: Path | None
    several: bool
    origin: Origin = field(default_factory=Origin)
    telling: Path | None = None

    @property
    def is_long(self) -> bool:
        """Whether its runs leave memory as they go."""
        return is_long(self.workload, self.requests)

    def tasks(self, rows: Iterable[tuple[int, float]]) -> list[Task]:
        """Every replicate of ``rows`` (which servers, the rate), row after row."""
        return [(which, rate, *replicate) for which, rate in rows for replicate in self.replicates]

    def source(self, rate_per_s: float, offset: int) -> tuple[Arrivals, Door]:
        """The requests of the seed that far from the first, as they come at that rate, and the door that they pass."""
        return source_of(self.workload, rate_per_s, self.seed + offset, self.longest)

    def folder(self, name: str, rate_per_s: float) -> Path:
        """Where the run of the row ``name`` at that rate is kept: ``run_dir`` itself, or a folder in it of several."""
        assert self.run_dir is not None, "nothing is kept"
        return self.run_dir / f"{name}-{rate_per_s:g}" if self.several else self.run_dir

    def kept(self, task: Task, name: str, policy: str) -> KeptRun | AbstractContextManager[None]:
        """The first replicate of a row is kept, where runs are."""
        if not self.leaves_files(task):
            return nullcontext()
        return KeptRun(
            self.folder(name, task[1]),
            self.conditions,
            policy=policy,
            words=self.words[task[0]],
            rate_per_s=task[1],
            seed=self.seed,
            origin=self.origin,
            users=users_of(self.workload),
        )

    def leaves_files(self, task: Task) -> bool:
        """Whether ``task`` keeps its run."""
        return self.run_dir is not None and task[2:] == (NOMINAL, 0)

    def known_by(self, executor: Executor) -> Sweep:
        """What its results hang on, by which ``executor`` keeps them: not where runs are kept, nor who asked.

        A trace on disk is known by its numbers, not by where they are.
        """
        unplaced, trace = replace(self, run_dir=None, origin=Origin()), self.workload
        if executor.keep is None or not isinstance(trace, Trace) or trace.recorded.distinct_blocks is not None:
            return unplaced
        return replace(unplaced, workload=replace(trace, recorded=cast("Any", trace.recorded.digests())))


def replicates_of(seeds: int, *, bracketed: bool) -> tuple[Replicate, ...]:
    """``seeds`` runs by the nominal clock; the first seed's by the slow and the fast one too."""
    return (*((NOMINAL, seed) for seed in range(seeds)), *([(SLOW, 0), (FAST, 0)] if bracketed else []))
