"""How often runs are done, where, and what is kept of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from servewise.ask.experiment import Progress
from servewise.ask.numbers import whole
from servewise.ask.origin import origin_of
from servewise.executing.executor import Executor, executor_named
from servewise.records.origin import Origin

MOST_SEEDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Runs of ``seeds`` seeds from ``seed`` on, done by ``executor``; ``progress`` is told how far they are.

    ``run_dir`` keeps the first run of each row (None: none is kept), with what made it, its ``origin``.
    """

    executor: Executor
    seed: int
    seeds: int
    run_dir: Path | None = None
    progress: Progress | None = None
    origin: Origin = field(default_factory=Origin)

    def made_by(self, line: str, workload: object, **files: object) -> Execution:
        """The same, of which all that is kept says that ``line`` made it from these files (see ``origin_of``)."""
        if self.run_dir is None and self.executor.keep is None:
            return replace(self, origin=Origin(command=line))
        origin = origin_of(line, workload, **files)
        return replace(self, origin=origin, executor=replace(self.executor, sources=origin.sources))

    def seeds_of(self, *, drawn: bool) -> range:
        """The seeds that are run: the first alone where nothing is ``drawn``."""
        return range(self.seed, self.seed + (self.seeds if drawn else 1))


def execution_of(
    executor: str | Executor,
    processes: int,
    keep: str | Path | None,
    *,
    seed: int,
    seeds: int,
    run_dir: str | Path | None,
    progress: Progress | None,
) -> Execution:
    """The execution that these options describe; InputError for seeds that are none, or an executor not known."""
    where = executor_named(executor, processes, keep)
    whole(seeds, "seeds", most=MOST_SEEDS)
    whole(seed, "seed", least=0)
    folder = None if run_dir is None else Path(run_dir)
    return Execution(executor=where, seed=seed, seeds=seeds, run_dir=folder, progress=progress)
