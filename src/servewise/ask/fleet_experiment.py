"""Runs of several layouts at several rates, replicated over seeds and clocks, over processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from servewise.ask import replicates
from servewise.ask.experiment import NOMINAL, Replicate, leaves_files
from servewise.ask.fleet_layout import Behaviour, Layout, run_layout
from servewise.ask.run import KeptRun, planned
from servewise.ask.serving import Load, source_of
from servewise.conditions import Conditions
from servewise.executing.executor import Executor
from servewise.executing.workers import Workers
from servewise.metrics.latency import ints
from servewise.metrics.saturation import Balance, trend
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary, summarise
from servewise.records.columns import COMPLETED, RequestColumns, StepColumns
from servewise.records.selection import steps_by_replica
from servewise.simulate.disaggregated.transfers import Moved
from servewise.simulate.fleet.fleet import FleetRun
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.roster import Head
from servewise.simulate.run import Run
from servewise.simulate.settled import since
from servewise.workload.sessions import SessionArrivals

COMMAND = "servewise fleet"
Progress = Callable[[int, int], None]
Task = tuple[int, float, int, int]  # which layout, the rate, the replicate
MOST_HEADS = 400  # changes of the number of replicas that an answer keeps


class Share(NamedTuple):
    """What one replica did: requests that ended there and their tokens, its steps, how long it is paid for.

    ``prompt_tokens``, ``cached_tokens`` and ``output_tokens`` are of its completed requests; ``computed_tokens`` are
    the prompt tokens of its steps, ``active_steps`` sequence-steps that made a token, ``slot_steps`` slots x steps.
    """

    number: int
    slots: int
    requests: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    computed_tokens: int
    active_steps: int
    slot_steps: int
    busy_s: float
    paid_s: float


class Outcome(NamedTuple):
    """One run: its summary, whether it was in balance, and what is a fleet's own."""

    summary: RunSummary
    balance: Balance
    shares: tuple[Share, ...]
    heads: tuple[Head, ...]
    retried: int
    retries: int
    moved: Moved | None


class FleetRow(NamedTuple):
    """The runs of one layout at one rate: put together, and those of the nominal clock by themselves."""

    summary: RunSummary
    runs: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetExperiment:
    """All that a worker must know.

    ``kinds`` are the replicas by their nominal, slow and fast clocks (the first alone where there is no spread).
    """

    layouts: tuple[Layout, ...]
    kinds: tuple[tuple[ReplicaKind, ...], ...]
    how: Behaviour
    replicates: tuple[Replicate, ...]
    workload: Load
    seed: int
    longest: int | None
    requests: int
    slo: Slo | None
    conditions: Conditions
    run_dir: Path | None
    several: bool


def run(
    experiment: FleetExperiment, rates: Sequence[float], executor: Executor, progress: Progress | None
) -> dict[tuple[int, float], FleetRow]:
    """Every replicate of every row, wherever ``executor`` says; then each row put together."""
    rows = [(which, rate) for which in range(len(experiment.layouts)) for rate in rates]
    tasks = [(which, rate, *replicate) for which, rate in rows for replicate in experiment.replicates]
    layouts, kept = experiment.layouts, experiment.run_dir is not None
    folders = [_folder(experiment, layouts[which], rate) for which, rate in rows] if kept else []
    keeping = planned(experiment.run_dir, folders, experiment.conditions, COMMAND)
    simulated, of = experiment.requests * len(tasks), replace(experiment, run_dir=None)
    with keeping, Workers(experiment, executor.worthwhile(simulated), of=of) as workers:
        done = list(workers.each(_replicate, tasks, progress, leaves_files(experiment.run_dir)))
    count = len(experiment.replicates)
    return {row: _together(experiment, done[at * count : (at + 1) * count]) for at, row in enumerate(rows)}


def _together(experiment: FleetExperiment, outcomes: Sequence[Outcome]) -> FleetRow:
    by = dict(zip(experiment.replicates, outcomes, strict=True))
    nominal = tuple(outcome for (clock, _), outcome in by.items() if clock == NOMINAL)
    spread = [by[clock, 0].summary if (clock, 0) in by else None for clock in (1, 2)]
    return FleetRow(replicates.together([each.summary for each in nominal], *spread), nominal)


def _replicate(experiment: FleetExperiment, task: Task) -> Outcome:
    which, rate, clock, offset = task
    layout, kinds, seed = experiment.layouts[which], experiment.kinds[clock], experiment.seed + offset
    source, door = source_of(experiment.workload, rate, seed, experiment.longest)
    settle_s = source.settle_s if isinstance(source, SessionArrivals) else 0.0
    with _kept(experiment, task) as kept:
        fleet, moved = run_layout(layout, kinds, source, experiment.how.later(settle_s), seed)
        settled = since(Run(fleet.requests, fleet.steps, max(fleet.slots)), settle_s)
        if kept is not None:
            kept.finish(settled)
    shares = shares_of(settled.requests, settled.steps, fleet, settle_s)
    summary = _used(summarise(settled.requests, settled.steps, slots=settled.slots, slo=experiment.slo), shares)
    return Outcome(
        replace(summary, rejected=summary.rejected + door.refused),
        trend(settled.requests),
        shares,
        _thinned(fleet.heads),
        len(fleet.retries),
        sum(fleet.retries.values()),
        moved,
    )


def _used(summary: RunSummary, shares: Sequence[Share]) -> RunSummary:
    """Utilisation over each replica's own slots, where these differ."""
    slots = {each.slots for each in shares}
    if len(slots) == 1:
        return summary
    held = sum(each.slot_steps for each in shares)
    used = sum(each.active_steps for each in shares) / held if held else float("nan")
    ci95 = {name: pair for name, pair in summary.ci95.items() if name != "utilisation"}
    return replace(summary, utilisation=used, ci95=ci95)


def shares_of(requests: RequestColumns, steps: StepColumns, fleet: FleetRun, since_s: float = 0.0) -> tuple[Share, ...]:
    """What each replica did, by number, and for how long it is paid from ``since_s`` on."""
    paid_s = fleet.paid_since(since_s)
    done = ints(requests.status) == COMPLETED
    where = ints(requests.replica)
    parts = {int(part.replica[0]): part for _, part in steps_by_replica(steps) if len(part)}
    return tuple(
        _share(requests, where, done, parts.get(number), number, slots, paid_s[number])
        for number, slots in enumerate(fleet.slots)
    )


def _share(
    requests: RequestColumns,
    where: np.typing.NDArray[np.int64],
    done: np.typing.NDArray[np.bool_],
    steps: StepColumns | None,
    number: int,
    slots: int,
    paid_s: float,
) -> Share:
    here = (where == number) & done
    prompt, cached = (int(ints(column)[here].sum()) for column in (requests.prompt_tokens, requests.cached_tokens))
    tokens = int(ints(requests.output_tokens)[here].sum())
    if steps is None:
        return Share(number, slots, int(here.sum()), prompt, cached, tokens, 0, 0, 0, 0.0, paid_s)
    many = ints(steps.steps)
    return Share(
        number,
        slots,
        int(here.sum()),
        prompt,
        cached,
        tokens,
        int(ints(steps.prefill_tokens).sum()),
        int((ints(steps.active) * many).sum()),
        int(slots * many.sum()),
        float(sum(steps.seconds)),
        paid_s,
    )


def _thinned(heads: Sequence[Head]) -> tuple[Head, ...]:
    """At most so many changes, evenly by time: of each stretch the last."""
    if len(heads) <= MOST_HEADS:
        return tuple(heads)
    end_s, kept = heads[-1].at_s, []
    for at, head in enumerate(heads):
        stretch = int(head.at_s / end_s * MOST_HEADS)
        later = int(heads[at + 1].at_s / end_s * MOST_HEADS) if at + 1 < len(heads) else inf
        if later > stretch:
            kept.append(head)
    return tuple(kept)


def _folder(experiment: FleetExperiment, layout: Layout, rate: float) -> Path:
    """Where a row's run is kept: the run directory itself, or a folder in it for each of several rows."""
    assert experiment.run_dir is not None
    name = f"{layout.router}-{layout.title.replace(' ', '-')}-{rate:g}"
    return experiment.run_dir / name if experiment.several else experiment.run_dir


def _kept(experiment: FleetExperiment, task: Task) -> KeptRun | AbstractContextManager[None]:
    """The first replicate of a row is kept."""
    which, rate, *replicate = task
    if experiment.run_dir is None or replicate != [NOMINAL, 0]:
        return nullcontext()
    layout = experiment.layouts[which]
    return KeptRun(
        _folder(experiment, layout, rate),
        experiment.conditions,
        policy=f"{layout.router}, {layout.title}",
        rate_per_s=rate,
        seed=experiment.seed,
        command=COMMAND,
    )
