"""Runs of several layouts at several rates, replicated over seeds and clocks, over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from servewise.ask import replicates
from servewise.ask.experiment import NOMINAL, leaves_files
from servewise.ask.fleet_portions import outcomes
from servewise.ask.fleet_run import COMMAND, FleetExperiment, Outcome, folder_of, replicate
from servewise.ask.long_runs import kept_by
from servewise.ask.run import planned
from servewise.ask.telling import told
from servewise.executing.executor import Executor
from servewise.executing.workers import Workers
from servewise.metrics.summary import RunSummary
from servewise.records.origin import Origin

Progress = Callable[[int, int], None]


class FleetRow(NamedTuple):
    """The runs of one layout at one rate: put together, and those of the nominal clock by themselves."""

    summary: RunSummary
    runs: tuple[Outcome, ...]


def run(
    experiment: FleetExperiment, rates: Sequence[float], executor: Executor, progress: Progress | None
) -> dict[tuple[int, float], FleetRow]:
    """Every replicate of every row, wherever ``executor`` says; then each row put together."""
    rows = [(which, rate) for which in range(len(experiment.layouts)) for rate in rates]
    tasks = [(which, rate, *replicate) for which, rate in rows for replicate in experiment.replicates]
    folders = kept_folders(experiment, rows)
    keeping = planned(experiment.run_dir, folders, experiment.conditions, COMMAND, experiment.origin.command)
    simulated = experiment.requests * len(tasks)
    of = kept_by(replace(experiment, run_dir=None, origin=Origin()), executor)
    telling = told(progress if experiment.is_long else None, simulated)
    with (
        keeping,
        telling as folder,
        Workers(replace(experiment, telling=folder), executor.worthwhile(simulated), of=of) as workers,
    ):
        if experiment.is_long:
            done = outcomes(replace(experiment, telling=folder), tasks, workers, executor)
        else:
            done = list(workers.each(replicate, tasks, progress, leaves_files(experiment.run_dir)))
    count = len(experiment.replicates)
    return {row: _together(experiment, done[at * count : (at + 1) * count]) for at, row in enumerate(rows)}


def kept_folders(experiment: FleetExperiment, rows: Iterable[tuple[int, float]]) -> list[Path]:
    """Where the runs of ``rows`` (which layout, the rate) are kept; none: nowhere."""
    if experiment.run_dir is None:
        return []
    return [folder_of(experiment, experiment.layouts[which], rate) for which, rate in rows]


def _together(experiment: FleetExperiment, outcomes: Sequence[Outcome]) -> FleetRow:
    by = dict(zip(experiment.replicates, outcomes, strict=True))
    nominal = tuple(outcome for (clock, _), outcome in by.items() if clock == NOMINAL)
    spread = [by[clock, 0].summary if (clock, 0) in by else None for clock in (1, 2)]
    return FleetRow(replicates.together([each.summary for each in nominal], *spread), nominal)
