"""Runs of several servers at several rates, replicated over seeds and coefficient draws, over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf, nextafter
from pathlib import Path
from typing import NamedTuple

from servewise.ask import replicates
from servewise.ask.long_runs import LongRun, is_long, kept_by
from servewise.ask.run import KeptRun, planned
from servewise.ask.serving import Door, Load, shapes_of, source_of
from servewise.ask.telling import Teller, told
from servewise.batching.speculative.tally import Tally
from servewise.conditions import Conditions
from servewise.executing.executor import Executor
from servewise.executing.workers import Workers
from servewise.metrics.saturation import Balance, trend
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary, summarise
from servewise.plan.saturation import Knee, between, saturation
from servewise.plan.server import Server
from servewise.records.origin import Origin
from servewise.simulate.settled import since
from servewise.workload.conversations import Conversations
from servewise.workload.sessions import SessionArrivals

COMMAND = "servewise simulate"
BACKLOG = 20_000  # requests at most
NOMINAL, SLOW, FAST = range(3)
Progress = Callable[[int, int], None]
Replicate = tuple[int, int]  # which clock, how far the seed is from the first
Task = tuple[int, float, int, int]  # which policy, the rate, the replicate


class Row(NamedTuple):
    """The runs of one policy at one rate, whether the first was in balance, and what it did in speculation."""

    summary: RunSummary
    balance: Balance
    tally: Tally | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """All that a worker must know.

    ``clocks`` are, for each policy, the server by its nominal, slow and fast clock (the first alone where there is no
    spread); ``requests`` how many one run has. ``several``: there is more than one row, so ``run_dir`` holds a folder
    for each.
    """

    clocks: tuple[tuple[Server, ...], ...]
    replicates: tuple[Replicate, ...]
    workload: Load
    seed: int
    longest: int | None
    requests: int
    slo: Slo | None
    conditions: Conditions
    run_dir: Path | None
    several: bool
    origin: Origin = field(default_factory=Origin)
    telling: Path | None = None  # where long runs tell how far they are

    @property
    def is_long(self) -> bool:
        """Whether its runs leave memory as they go."""
        return is_long(self.workload, self.requests)


def run(
    experiment: Experiment, rates: Sequence[float], executor: Executor, progress: Progress | None
) -> tuple[dict[tuple[int, float], Row], list[Knee]]:
    """Every replicate of every row and knee, wherever ``executor`` says; then each put together."""
    talks = isinstance(experiment.workload, Conversations)
    policies = range(len(experiment.clocks))
    rows = [(which, rate) for which in policies for rate in rates]
    tasks = [(which, rate, *replicate) for which, rate in rows for replicate in experiment.replicates]
    backlogs = [(which, clock) for which in policies for clock in sorted({each for each, _ in experiment.replicates})]
    folders = kept_folders(experiment, rows)
    backlogs = [] if talks else backlogs  # what a cache still has of a conversation hangs on the rate
    simulated = experiment.requests * (len(tasks) + len(backlogs))
    keeping = planned(experiment.run_dir, folders, experiment.conditions, COMMAND, experiment.origin.command)
    of = kept_by(replace(experiment, run_dir=None, origin=Origin()), executor)
    telling = told(progress if experiment.is_long else None, experiment.requests * len(tasks))
    with (
        keeping,
        telling as folder,
        Workers(replace(experiment, telling=folder), executor.worthwhile(simulated), of=of) as workers,
    ):
        knees = dict(zip(backlogs, workers.each(_knee, backlogs), strict=True))
        done = []
        for summary in workers.each(_replicate, tasks, here=leaves_files(experiment.run_dir)):
            done.append(summary)
            if progress is not None and not experiment.is_long:
                progress(len(done), len(tasks))
    count = len(experiment.replicates)
    grouped = {row: done[index * count : (index + 1) * count] for index, row in enumerate(rows)}
    whole = {row: _together(experiment.replicates, each) for row, each in grouped.items()}
    if talks:
        return whole, [seen_knee({rate: whole[which, rate] for rate in rates}) for which in policies]
    return whole, [between(*(knees[backlog] for backlog in backlogs if backlog[0] == which)) for which in policies]


def kept_folders(experiment: Experiment, rows: Iterable[tuple[int, float]]) -> list[Path]:
    """Where the runs of ``rows`` (which policy, the rate) are kept; none: nowhere."""
    return [] if experiment.run_dir is None else [_folder(experiment, *row) for row in rows]


def leaves_files(run_dir: Path | None) -> Callable[[Task], bool]:
    """Whether a task keeps its run: the first replicate of a row does, where runs are kept."""
    return lambda task: run_dir is not None and task[2:] == (NOMINAL, 0)


def seen_knee(rows: Mapping[float, Row]) -> Knee:
    """The knee as far as the rows tell: from the highest rate that kept up to the lowest whose backlog grew.

    A closed loop (its rate is 0) keeps up at the rate that it has.
    """
    grew = min((rate for rate, row in rows.items() if row.balance.verdict == "growing"), default=inf)
    kept = max((rate or row.summary.requests_per_s for rate, row in rows.items() if rate < grew), default=0.0)
    return Knee(nextafter(kept, inf) if kept else 0.0, grew)  # at ``kept`` itself it keeps up


def replicates_of(seeds: int, *, bracketed: bool) -> tuple[Replicate, ...]:
    """``seeds`` runs by the nominal clock; the first seed's by the slow and the fast one too."""
    return (*((NOMINAL, seed) for seed in range(seeds)), *([(SLOW, 0), (FAST, 0)] if bracketed else []))


def _together(which: Sequence[Replicate], runs: Sequence[Row]) -> Row:
    summaries = dict(zip(which, (each.summary for each in runs), strict=True))
    seeds = [summary for (clock, _), summary in summaries.items() if clock == NOMINAL]
    whole = replicates.together(seeds, summaries.get((SLOW, 0)), summaries.get((FAST, 0)))
    return runs[which.index((NOMINAL, 0))]._replace(summary=whole)


def _replicate(experiment: Experiment, task: Task) -> Row:
    if experiment.is_long:
        return _long(experiment, task)
    which, rate, clock, seed = task
    server = experiment.clocks[which][clock]
    tally = None if server.speculation is None else Tally()
    source, door = source_of(experiment.workload, rate, experiment.seed + seed, experiment.longest)
    with _kept(experiment, task) as kept:
        run = server.run(source, seed=experiment.seed + seed, tally=tally)
        if isinstance(source, SessionArrivals):
            run = since(run, source.settle_s)
        if kept is not None:
            kept.finish(run)
    summary = summarise(run.requests, run.steps, slots=run.slots, slo=experiment.slo)
    return Row(replace(summary, rejected=summary.rejected + door.refused), trend(run.requests), tally)


def _long(experiment: Experiment, task: Task) -> Row:
    """The same of a run too long for memory."""
    which, rate, clock, offset = task
    server, seed = experiment.clocks[which][clock], experiment.seed + offset
    tally = None if server.speculation is None else Tally()
    source, door = source_of(experiment.workload, rate, seed, experiment.longest)
    tell = Teller(experiment.telling, "-".join(map(str, task)))
    with _kept(experiment, task) as kept, LongRun(server.policy.slots, experiment.slo, kept) as long:
        server.run(source, seed=seed, tally=tally, into=long.into, progress=tell)
        summary, balance = long.figures()
    return Row(replace(summary, rejected=summary.rejected + door.refused), balance, tally)


def _knee(experiment: Experiment, of: tuple[int, int]) -> Knee:
    which, clock = of
    door = Door(shapes_of(experiment.workload, experiment.seed), experiment.longest)
    return saturation(experiment.clocks[which][clock], list(islice(door, BACKLOG)))


def _folder(experiment: Experiment, which: int, rate: float) -> Path:
    """Where a row's run is kept: the run directory itself, or a folder in it for each of several rows."""
    assert experiment.run_dir is not None
    name = experiment.clocks[which][NOMINAL].policy.name
    return experiment.run_dir / f"{name}-{rate:g}" if experiment.several else experiment.run_dir


def _kept(experiment: Experiment, task: Task) -> KeptRun | AbstractContextManager[None]:
    """The first replicate of a row is kept."""
    which, rate, *replicate = task
    if experiment.run_dir is None or replicate != [NOMINAL, 0]:
        return nullcontext()
    return KeptRun(
        _folder(experiment, which, rate),
        experiment.conditions,
        policy=experiment.clocks[which][NOMINAL].policy.name,
        rate_per_s=rate,
        seed=experiment.seed,
        origin=experiment.origin,
    )
