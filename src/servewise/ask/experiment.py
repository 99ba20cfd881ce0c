"""Runs of several servers at several rates, replicated over seeds and coefficient draws, over processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from servewise.ask import replicates
from servewise.ask.run import keep_run
from servewise.ask.serving import Door, Load, shapes_of, source_of
from servewise.conditions import Conditions
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary, summarise
from servewise.plan import saturation
from servewise.plan.saturation import Knee
from servewise.plan.server import Server
from servewise.plan.workers import Workers
from servewise.simulate.run import Run
from servewise.steptime.estimator import Estimator

BACKLOG_REQUESTS = 5_000
Progress = Callable[[int, int], None]
Task = tuple[int, float, int]  # which server, the rate, which replicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """All that a worker must know: one server a policy, one clock a replicate.

    ``several``: there is more than one row, so ``run_dir`` holds a folder for each.
    """

    servers: tuple[Server, ...]
    clocks: tuple[Estimator, ...]
    workload: Load
    seed: int
    longest: int | None
    slo: Slo | None
    conditions: Conditions
    run_dir: Path | None
    several: bool


def run(
    experiment: Experiment,
    rates: Sequence[float],
    processes: int,
    progress: Progress | None,
    *,
    seeded: bool,
    drawn: bool,
) -> tuple[dict[tuple[int, float], RunSummary], list[Knee]]:
    """Every replicate of every row and knee, by as many processes as there are; then each put together."""
    policies, count = range(len(experiment.servers)), len(experiment.clocks)
    rows = [(which, rate) for which in policies for rate in rates]
    runs = [(which, rate, replicate) for which, rate in rows for replicate in range(count)]
    backlogs = [(which, 0.0, replicate) for which in policies for replicate in range(count)]
    with Workers(experiment, min(processes, len(runs))) as workers:
        knees = list(workers.each(_knee, backlogs))
        done = []
        for summary in workers.each(_replicate, runs):
            done.append(summary)
            if progress is not None:
                progress(len(done), len(runs))
    grouped = {row: done[index * count : (index + 1) * count] for index, row in enumerate(rows)}
    return (
        {row: replicates.together(each, seeded=seeded, drawn=drawn) for row, each in grouped.items()},
        [saturation.together(knees[which * count : (which + 1) * count], shrink=not drawn) for which in policies],
    )


def _replicate(experiment: Experiment, task: Task) -> RunSummary:
    which, rate, replicate = task
    server = experiment.servers[which].timed_by(experiment.clocks[replicate])
    source, door = source_of(experiment.workload, rate, experiment.seed + replicate, experiment.longest)
    run = server.run(source)
    if experiment.run_dir is not None and replicate == 0:
        _keep(experiment, run, which, rate)
    summary = summarise(run.requests, run.steps, slots=run.slots, slo=experiment.slo)
    return replace(summary, rejected=summary.rejected + door.refused)


def _keep(experiment: Experiment, run: Run, which: int, rate: float) -> None:
    """The first replicate of a row: the run directory itself, or one in it for each of several rows."""
    assert experiment.run_dir is not None
    policy = experiment.servers[which].policy
    keep_run(
        experiment.run_dir / f"{policy.name}-{rate:g}" if experiment.several else experiment.run_dir,
        run,
        experiment.conditions,
        policy=policy.name,
        rate_per_s=rate,
        seed=experiment.seed,
        command="servewise simulate",
    )


def _knee(experiment: Experiment, task: Task) -> Knee:
    which, _, replicate = task
    server = experiment.servers[which].timed_by(experiment.clocks[replicate])
    door = Door(shapes_of(experiment.workload, experiment.seed + replicate), experiment.longest)
    return saturation.saturation(server, list(islice(door, BACKLOG_REQUESTS)))
