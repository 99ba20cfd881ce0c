"""Long runs of fleets over several processes: each simulates some of a fleet's replicas, the records are merged.

Only where that is exact: where the router goes by requests alone, and nothing else ties replicas together. Other runs
are done whole, each by one process, and one line says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from servewise.ask.fleet_layout import Layout, router_named
from servewise.ask.fleet_run import FleetExperiment, Outcome, drawn, kept_run, outcome, replicate
from servewise.ask.fleet_shares import Shares, used
from servewise.ask.long_runs import LongRun
from servewise.ask.serving import Door
from servewise.ask.sweep import Task
from servewise.ask.telling import Teller
from servewise.batching.policies import Static
from servewise.batching.speculative.tally import Tally
from servewise.executing.executor import Executor
from servewise.executing.notes import note
from servewise.executing.workers import Workers
from servewise.records.columns import RequestColumns, StepColumns
from servewise.scratch import Folder, Scratch
from servewise.simulate.fleet.fleet import FleetRun
from servewise.simulate.fleet.merging import PortionRecords, merge
from servewise.simulate.fleet.portion import NotApart, simulate_portion
from servewise.simulate.fleet.roster import Head
from servewise.simulate.fleet.routers.router import heeds_state
from servewise.workload.synthetic import ClosedLoop


class Job(NamedTuple):
    """Portion ``part`` of the ``parts`` of a run, for ``folder``; one part: the whole run."""

    task: Task
    part: int = 0
    parts: int = 1
    folder: Folder | None = None


class Portion(NamedTuple):
    """What a portion wrote, None: it hangs on the others after all; ``refused`` requests never came in.

    ``tally``: what it did in speculation.
    """

    records: PortionRecords | None
    refused: int
    tally: Tally | None = None


def outcomes(
    experiment: FleetExperiment, tasks: Sequence[Task], workers: Workers[FleetExperiment], executor: Executor
) -> list[Outcome]:
    """The runs of ``tasks``, in portions where that is exact and there are processes for it."""
    with Scratch() as scratch:
        parts = {which: _parts(experiment, layout, executor) for which, layout in enumerate(experiment.layouts)}
        jobs = [job for task in tasks for job in _jobs(task, parts[task[0]], scratch)]
        here = experiment.sweep.leaves_files
        results = workers.each(_done, jobs, here=lambda job: job.parts == 1 and here(job.task))
        return [_outcome(experiment, task, [next(results) for _ in range(parts[task[0]])]) for task in tasks]


def _parts(experiment: FleetExperiment, layout: Layout, executor: Executor) -> int:
    """Into how many portions the runs of ``layout`` are cut."""
    if executor.cluster is not None or executor.keep is not None or executor.processes < 2 or layout.replicas < 2:
        return 1
    tie = _tie(experiment, layout)
    if tie:
        note(f"{layout.router}, {layout.title}: {tie}, so each run of it is simulated by one process")
        return 1
    return min(executor.processes, layout.replicas)


def _tie(experiment: FleetExperiment, layout: Layout) -> str:
    """What makes a replica's run hang on the others'; empty: nothing."""
    how, kinds = experiment.how, experiment.kinds[0]
    if layout.split is not None:
        return "prefill and decode servers hand requests on"
    if how.outages or how.autoscale or how.lockstep:
        return "failures, autoscaling and lockstep tie the replicas together"
    if heeds_state(router_named(layout.router, how.settings, kinds[0], experiment.sweep.seed)):
        return "its router looks at what the replicas do"
    if any(isinstance(each.policy, Static) for each in kinds):
        return "static batches wait until no replica has anything to do"
    return ""


def _jobs(task: Task, parts: int, scratch: Scratch) -> list[Job]:
    if parts == 1:
        return [Job(task)]
    return [Job(task, part, parts, scratch.folder()) for part in range(parts)]


def _done(experiment: FleetExperiment, job: Job) -> Outcome | Portion:
    return replicate(experiment, job.task) if job.folder is None else _portion(experiment, job, job.folder)


def _portion(experiment: FleetExperiment, job: Job, folder: Folder) -> Portion:
    which, rate, clock, offset = job.task
    layout, sweep = experiment.layouts[which], experiment.sweep
    seed = sweep.seed + offset
    kinds, tally = drawn(experiment.kinds[clock], seed)
    assert not isinstance(sweep.workload, ClosedLoop), "a closed loop is never long"
    door = Door(sweep.workload.at_rate(rate).requests(seed), sweep.longest)
    router = router_named(layout.router, experiment.how.settings, kinds[0], seed)
    tell = Teller(sweep.telling, "-".join(map(str, (*job.task, job.part))))
    records = PortionRecords(folder)
    try:
        simulate_portion(door, kinds, router, range(len(kinds))[job.part :: job.parts], records, progress=tell)
    except NotApart:
        return Portion(None, door.refused)
    return Portion(records, door.refused, tally)


def _outcome(experiment: FleetExperiment, task: Task, results: Sequence[Outcome | Portion]) -> Outcome:
    portions = [each for each in results if isinstance(each, Portion)]
    if not portions:
        (whole,) = results
        assert isinstance(whole, Outcome)
        return whole
    if any(each.records is None for each in portions):
        note("replicas hang on each other at the run's end, so it is simulated again, by one process")
        return replicate(experiment, task)
    return _merged(experiment, task, portions)


def _merged(experiment: FleetExperiment, task: Task, portions: Sequence[Portion]) -> Outcome:
    kinds = experiment.kinds[task[2]]
    records = [each.records for each in portions if each.records is not None]
    tallies = [each.tally for each in portions if each.tally is not None]
    slots = tuple(each.policy.slots for each in kinds)
    shares = Shares()
    with kept_run(experiment, task) as kept, LongRun(max(slots), experiment.sweep.slo, kept, [shares]) as long:
        merge(records, long.into)
        summary, balance = long.figures()
        end_s = long.last_end_s
    fleet = FleetRun(
        requests=RequestColumns(),
        steps=StepColumns(),
        slots=slots,
        heads=(Head(0.0, len(kinds), 0, 0, 0),),
        paid=((0.0, end_s),) * len(kinds),
    )
    for each in records:
        each.remove()
    found = shares.shares(fleet)
    tally = reduce(Tally.plus, tallies) if tallies else None
    return outcome(used(summary, found), balance, found, fleet, portions[0].refused, tally=tally)
