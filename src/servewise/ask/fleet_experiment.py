"""Runs of several layouts at several rates, replicated over seeds and clocks, over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from servewise.ask import replicates
from servewise.ask.fleet_portions import outcomes
from servewise.ask.fleet_run import COMMAND, FleetExperiment, Outcome, name_of, replicate
from servewise.ask.run import planned
from servewise.ask.sweep import NOMINAL
from servewise.ask.telling import told
from servewise.executing.executor import Executor
from servewise.executing.workers import Workers
from servewise.metrics.summary import RunSummary

Progress = Callable[[int, int], None]


class FleetRow(NamedTuple):
    """The runs of one layout at one rate: put together, and those of the nominal clock by themselves."""

    summary: RunSummary
    runs: tuple[Outcome, ...]


def run(
    experiment: FleetExperiment, rates: Sequence[float], executor: Executor, progress: Progress | None
) -> dict[tuple[int, float], FleetRow]:
    """Every replicate of every row, wherever ``executor`` says; then each row put together."""
    sweep = experiment.sweep
    rows = [(which, rate) for which in range(len(experiment.layouts)) for rate in rates]
    tasks = sweep.tasks(rows)
    folders = kept_folders(experiment, rows)
    keeping = planned(sweep.run_dir, folders, sweep.conditions, COMMAND, sweep.origin.command)
    simulated = sweep.requests * len(tasks)
    of = replace(experiment, sweep=sweep.known_by(executor))
    telling = told(progress if sweep.is_long else None, simulated)
    with (
        keeping,
        telling as folder,
        Workers(
            heard := replace(experiment, sweep=replace(sweep, telling=folder)), executor.worthwhile(simulated), of=of
        ) as workers,
    ):
        if sweep.is_long:
            done = outcomes(heard, tasks, workers, executor)
        else:
            done = list(workers.each(replicate, tasks, progress, sweep.leaves_files))
    count = len(sweep.replicates)
    return {row: _together(experiment, done[at * count : (at + 1) * count]) for at, row in enumerate(rows)}


def kept_folders(experiment: FleetExperiment, rows: Iterable[tuple[int, float]]) -> list[Path]:
    """Where the runs of ``rows`` (which layout, the rate) are kept; none: nowhere."""
    if experiment.sweep.run_dir is None:
        return []
    return [experiment.sweep.folder(name_of(experiment.layouts[which]), rate) for which, rate in rows]


def _together(experiment: FleetExperiment, outcomes: Sequence[Outcome]) -> FleetRow:
    by = dict(zip(experiment.sweep.replicates, outcomes, strict=True))
    nominal = tuple(outcome for (clock, _), outcome in by.items() if clock == NOMINAL)
    spread = [by[clock, 0].summary if (clock, 0) in by else None for clock in (1, 2)]
    return FleetRow(replicates.together([each.summary for each in nominal], *spread), nominal)
