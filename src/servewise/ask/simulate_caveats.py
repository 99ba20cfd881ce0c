"""What a reader must know beside a simulated server's figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from servewise.ask.experiment import Experiment
from servewise.ask.machine import Machine, staged_caveats
from servewise.ask.offered import Offered
from servewise.ask.serving import Door, caveats_of, outgrown_caveats, refused_caveats
from servewise.batching.policies import Policy
from servewise.caveats import Caveat
from servewise.metrics.summary import RunSummary
from servewise.plan.saturation import Knee
from servewise.steptime.estimator import Estimator
from servewise.steptime.ranges import under_way_caveats


def simulate_caveats(
    machine: Machine,
    offered: Offered,
    door: Door,
    experiment: Experiment,
    knees: Sequence[Knee],
    summaries: Iterable[RunSummary],
) -> tuple[Caveat, ...]:
    """The machine's, the load's, the seeds', and those of the rows that were unstable or beyond the clock's fit."""
    policies = [each[0].policy for each in experiment.clocks]
    return (
        machine.caveats
        + caveats_of(offered.load)
        + machine.pool.caveats
        + staged_caveats(machine.deployment)
        + _traced(offered, drawn=len(experiment.clocks[0]) > 1)
        + refused_caveats(door.refused, door.came, door.longest)
        + outgrown_caveats(offered.load, experiment.sweep.seed)
        + _unstable(policies, offered.rates, knees)
        + _beyond(machine.clock, max(summaries, key=_under_way))
    )


def _traced(offered: Offered, *, drawn: bool) -> tuple[Caveat, ...]:
    if offered.seeded:
        return ()
    of = "from its own spread over time" + (" and from that of the coefficients" if drawn else "")
    message = f"{offered.load.title} is replayed as it came, whatever the seed: intervals are {of}"
    return (Caveat("replayed-trace", message, "a synthetic workload of the same lengths varies with the seed"),)


def _unstable(policies: Sequence[Policy], rates: Sequence[float], knees: Sequence[Knee]) -> tuple[Caveat, ...]:
    return tuple(
        Caveat(
            "unstable",
            f"{policy.name}: unstable above {knee.low_per_s:.3g} requests/s (knee {knee.low_per_s:.3g} to "
            f"{knee.high_per_s:.3g}): p95 grows with the length of the run",
            "a lower rate, more replicas, or more slots and KV memory",
        )
        for policy, knee in zip(policies, knees, strict=True)
        if max(rates) >= knee.low_per_s
    )


def _under_way(summary: RunSummary) -> float:
    """Requests under way, by Little's law; 0 where none completed."""
    found = summary.requests_per_s * summary.e2e.mean
    return found if isfinite(found) else 0.0


def _beyond(clock: Estimator, summary: RunSummary) -> tuple[Caveat, ...]:
    """A caveat where more requests are under way than the clock was fitted on."""
    under_way = _under_way(summary)
    cure = f"calibrate on {under_way:.0f} streams or more, or lower the rate"
    return under_way_caveats(clock, under_way, f"{summary.requests_per_s:.3g} requests/s", cure)
