"""Runs of several servers at several rates, replicated over seeds and coefficient draws, over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, nextafter
from pathlib import Path
from typing import NamedTuple

from servewise.ask import replicates
from servewise.ask.long_runs import LongRun
from servewise.ask.run import KeptRun, planned
from servewise.ask.serving import Door, shapes_of
from servewise.ask.sweep import FAST, NOMINAL, SLOW, Replicate, Sweep, Task
from servewise.ask.telling import Teller, told
from servewise.batching.speculative.tally import Tally
from servewise.executing.executor import Executor
from servewise.executing.workers import Workers
from servewise.metrics.saturation import Balance, trend
from servewise.metrics.summary import RunSummary, summarise
from servewise.plan.saturation import Knee, between, saturation
from servewise.plan.server import Server
from servewise.simulate.settled import since
from servewise.workload.conversations import Conversations
from servewise.workload.sessions import SessionArrivals

COMMAND = "servewise simulate"
BACKLOG = 20_000  # requests at most
Progress = Callable[[int, int], None]


class Row(NamedTuple):
    """The runs of one policy at one rate, whether the first was in balance, and what it did in speculation."""

    summary: RunSummary
    balance: Balance
    tally: Tally | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """All that a worker must know.

    ``clocks`` are, for each policy, the server by its nominal, slow and fast clock (the first alone where there is no
    spread).
    """

    clocks: tuple[tuple[Server, ...], ...]
    sweep: Sweep


def run(
    experiment: Experiment, rates: Sequence[float], executor: Executor, progress: Progress | None
) -> tuple[dict[tuple[int, float], Row], list[Knee]]:
    """Every replicate of every row and knee, wherever ``executor`` says; then each put together."""
    sweep = experiment.sweep
    talks = isinstance(sweep.workload, Conversations)
    policies = range(len(experiment.clocks))
    rows = [(which, rate) for which in policies for rate in rates]
    tasks = sweep.tasks(rows)
    backlogs = [(which, clock) for which in policies for clock in sorted({each for each, _ in sweep.replicates})]
    folders = kept_folders(experiment, rows)
    backlogs = [] if talks else backlogs  # what a cache still has of a conversation hangs on the rate
    simulated = sweep.requests * (len(tasks) + len(backlogs))
    keeping = planned(sweep.run_dir, folders, sweep.conditions, COMMAND, sweep.origin.command)
    of = replace(experiment, sweep=sweep.known_by(executor))
    telling = told(progress if sweep.is_long else None, sweep.requests * len(tasks))
    with (
        keeping,
        telling as folder,
        Workers(
            replace(experiment, sweep=replace(sweep, telling=folder)), executor.worthwhile(simulated), of=of
        ) as workers,
    ):
        knees = dict(zip(backlogs, workers.each(_knee, backlogs), strict=True))
        done = []
        for summary in workers.each(_replicate, tasks, here=sweep.leaves_files):
            done.append(summary)
            if progress is not None and not sweep.is_long:
                progress(len(done), len(tasks))
    count = len(sweep.replicates)
    grouped = {row: done[index * count : (index + 1) * count] for index, row in enumerate(rows)}
    whole = {row: _together(sweep.replicates, each) for row, each in grouped.items()}
    if talks:
        return whole, [seen_knee({rate: whole[which, rate] for rate in rates}) for which in policies]
    return whole, [between(*(knees[backlog] for backlog in backlogs if backlog[0] == which)) for which in policies]


def kept_folders(experiment: Experiment, rows: Iterable[tuple[int, float]]) -> list[Path]:
    """Where the runs of ``rows`` (which policy, the rate) are kept; none: nowhere."""
    sweep = experiment.sweep
    return [] if sweep.run_dir is None else [sweep.folder(_name(experiment, which), rate) for which, rate in rows]


def seen_knee(rows: Mapping[float, Row]) -> Knee:
    """The knee as far as the rows tell: from the highest rate that kept up to the lowest whose backlog grew.

    A closed loop (its rate is 0) keeps up at the rate that it has.
    """
    grew = min((rate for rate, row in rows.items() if row.balance.verdict == "growing"), default=inf)
    kept = max((rate or row.summary.requests_per_s for rate, row in rows.items() if rate < grew), default=0.0)
    return Knee(nextafter(kept, inf) if kept else 0.0, grew)  # at ``kept`` itself it keeps up


def _together(which: Sequence[Replicate], runs: Sequence[Row]) -> Row:
    summaries = dict(zip(which, (each.summary for each in runs), strict=True))
    seeds = [summary for (clock, _), summary in summaries.items() if clock == NOMINAL]
    whole = replicates.together(seeds, summaries.get((SLOW, 0)), summaries.get((FAST, 0)))
    return runs[which.index((NOMINAL, 0))]._replace(summary=whole)


def _replicate(experiment: Experiment, task: Task) -> Row:
    sweep = experiment.sweep
    if sweep.is_long:
        return _long(experiment, task)
    which, rate, clock, offset = task
    server = experiment.clocks[which][clock]
    tally = None if server.speculation is None else Tally()
    source, door = sweep.source(rate, offset)
    with _kept(experiment, task) as kept:
        run = server.run(source, seed=sweep.seed + offset, tally=tally)
        if isinstance(source, SessionArrivals):
            run = since(run, source.settle_s)
        if kept is not None:
            kept.finish(run)
    summary = summarise(run.requests, run.steps, slots=run.slots, slo=sweep.slo)
    return Row(replace(summary, rejected=summary.rejected + door.refused), trend(run.requests), tally)


def _long(experiment: Experiment, task: Task) -> Row:
    """The same of a run too long for memory."""
    which, rate, clock, offset = task
    server, sweep = experiment.clocks[which][clock], experiment.sweep
    tally = None if server.speculation is None else Tally()
    source, door = sweep.source(rate, offset)
    tell = Teller(sweep.telling, "-".join(map(str, task)))
    with _kept(experiment, task) as kept, LongRun(server.policy.slots, sweep.slo, kept) as long:
        server.run(source, seed=sweep.seed + offset, tally=tally, into=long.into, progress=tell)
        summary, balance = long.figures()
    return Row(replace(summary, rejected=summary.rejected + door.refused), balance, tally)


def _knee(experiment: Experiment, of: tuple[int, int]) -> Knee:
    which, clock = of
    sweep = experiment.sweep
    door = Door(shapes_of(sweep.workload, sweep.seed), sweep.longest)
    return saturation(experiment.clocks[which][clock], list(islice(door, BACKLOG)))


def _name(experiment: Experiment, which: int) -> str:
    return experiment.clocks[which][NOMINAL].policy.name


def _kept(experiment: Experiment, task: Task) -> KeptRun | AbstractContextManager[None]:
    name = _name(experiment, task[0])
    return experiment.sweep.kept(task, name, name)
