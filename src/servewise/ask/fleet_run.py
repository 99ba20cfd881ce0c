"""One run of one layout at one rate, in memory or, if it is long, with its records leaving as they are made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from servewise.ask.fleet_layout import Behaviour, Layout, run_layout
from servewise.ask.fleet_shares import Share, Shares, shares_of, used
from servewise.ask.long_runs import LongRun
from servewise.ask.run import KeptRun
from servewise.ask.sweep import Sweep, Task
from servewise.ask.telling import Teller
from servewise.batching.speculative.tally import Tally
from servewise.metrics.saturation import Balance, trend
from servewise.metrics.summary import RunSummary, summarise
from servewise.simulate.disaggregated.transfers import Moved
from servewise.simulate.fleet.fleet import FleetRun
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.roster import Head
from servewise.simulate.run import Run
from servewise.simulate.settled import since
from servewise.workload.sessions import SessionArrivals

COMMAND = "servewise fleet"
MOST_HEADS = 400  # changes of the number of replicas that an answer keeps


class Outcome(NamedTuple):
    """One run: its summary, whether it was in balance, what is a fleet's own, and what it did in speculation."""

    summary: RunSummary
    balance: Balance
    shares: tuple[Share, ...]
    heads: tuple[Head, ...]
    retried: int
    retries: int
    moved: Moved | None
    tally: Tally | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetExperiment:
    """All that a worker must know.

    ``kinds`` are the replicas by their nominal, slow and fast clocks (the first alone where there is no spread).
    """

    layouts: tuple[Layout, ...]
    kinds: tuple[tuple[ReplicaKind, ...], ...]
    how: Behaviour
    sweep: Sweep


def replicate(experiment: FleetExperiment, task: Task) -> Outcome:
    """The run of ``task``."""
    if experiment.sweep.is_long and experiment.layouts[task[0]].split is None:
        return _long(experiment, task)
    which, rate, clock, offset = task
    layout, seed = experiment.layouts[which], experiment.sweep.seed + offset
    kinds, tally = drawn(experiment.kinds[clock], seed)
    source, door = experiment.sweep.source(rate, offset)
    settle_s = source.settle_s if isinstance(source, SessionArrivals) else 0.0
    with kept_run(experiment, task) as kept:
        fleet, moved = run_layout(layout, kinds, source, experiment.how.later(settle_s), seed)
        settled = since(Run(fleet.requests, fleet.steps, max(fleet.slots)), settle_s)
        if kept is not None:
            kept.finish(settled)
    shares = shares_of(settled.requests, settled.steps, fleet, settle_s)
    summary = used(summarise(settled.requests, settled.steps, slots=settled.slots, slo=experiment.sweep.slo), shares)
    return outcome(summary, trend(settled.requests), shares, fleet, door.refused, moved, tally)


def _long(experiment: FleetExperiment, task: Task) -> Outcome:
    """The same of a run too long for memory."""
    which, rate, clock, offset = task
    layout, seed = experiment.layouts[which], experiment.sweep.seed + offset
    kinds, tally = drawn(experiment.kinds[clock], seed)
    source, door = experiment.sweep.source(rate, offset)
    tell = Teller(experiment.sweep.telling, "-".join(map(str, task)))
    shares, slots = Shares(), max(each.policy.slots for each in kinds)
    with kept_run(experiment, task) as kept, LongRun(slots, experiment.sweep.slo, kept, [shares]) as long:
        fleet, moved = run_layout(layout, kinds, source, experiment.how, seed, into=long.into, progress=tell)
        summary, balance = long.figures()
    found = shares.shares(fleet)
    return outcome(used(summary, found), balance, found, fleet, door.refused, moved, tally)


def drawn(kinds: Sequence[ReplicaKind], seed: int) -> tuple[tuple[ReplicaKind, ...], Tally | None]:
    """``kinds`` for the run of ``seed``, and what counts their drafts (None: they draft nothing)."""
    tally = Tally() if any(each.speculates for each in kinds) else None
    return tuple(each.drawing(seed, tally) for each in kinds), tally


def outcome(
    summary: RunSummary,
    balance: Balance,
    shares: tuple[Share, ...],
    fleet: FleetRun,
    refused: int,
    moved: Moved | None = None,
    tally: Tally | None = None,
) -> Outcome:
    """What ``fleet`` did, where ``refused`` requests never came in."""
    return Outcome(
        replace(summary, rejected=summary.rejected + refused),
        balance,
        shares,
        _thinned(fleet.heads),
        len(fleet.retries),
        sum(fleet.retries.values()),
        moved,
        tally,
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


def name_of(layout: Layout) -> str:
    """What the folders of its runs are called."""
    return f"{layout.router}-{layout.title.replace(' ', '-')}"


def kept_run(experiment: FleetExperiment, task: Task) -> KeptRun | AbstractContextManager[None]:
    """The first replicate of a row is kept."""
    layout = experiment.layouts[task[0]]
    return experiment.sweep.kept(task, name_of(layout), f"{layout.router}, {layout.title}")
