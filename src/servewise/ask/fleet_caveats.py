"""What a reader must know beside a fleet's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from servewise.ask.fleet_experiment import FleetRow
from servewise.ask.fleet_layout import Behaviour, Layout
from servewise.ask.fleet_run import FleetExperiment
from servewise.ask.fleet_servers import Servers
from servewise.ask.serving import Door, Load, caveats_of, outgrown_caveats, refused_caveats
from servewise.caveats import Caveat
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.steptime.ranges import under_way_caveats


def fleet_caveats(
    pools: Sequence[Servers],
    experiment: FleetExperiment,
    door: Door,
    rows: Mapping[tuple[int, float], FleetRow],
) -> tuple[Caveat, ...]:
    """Those of the clocks and drafts of all ``pools``, the load's, the fleet's own, the rows'."""
    load, layouts, how, kind = experiment.sweep.workload, experiment.layouts, experiment.how, pools[0].kinds[0]
    return (
        tuple(found for each in pools for found in each.caveats)
        + caveats_of(load)
        + refused_caveats(door.refused, door.came, door.longest)
        + outgrown_caveats(load, experiment.sweep.seed)
        + _of_pools(layouts, how)
        + _of_lockstep(how)
        + _of_prefixes(layouts, load, kind)
        + _growing(layouts, rows)
        + _beyond(rows, kind)
    )


def _of_pools(layouts: Sequence[Layout], how: Behaviour) -> tuple[Caveat, ...]:
    if not any(each.split for each in layouts) or how.link is None:
        return ()
    found = [
        Caveat(
            "prefill-blocks-free-early",
            "a prefill server's KV blocks are counted as free when the prefill ends, not when the transfer does",
            "read the mean wait of the transfers: where it is long, prefill servers hold more than is counted",
        )
    ]
    if how.link.standing != "measured":
        message = f"the link ({how.link.name}) is {how.link.standing or 'assumed'}, not measured between your servers"
        found.append(
            Caveat("assumed-link", message, "measure it (e.g. nccl-tests sendrecv) and give --link RATE:LATENCY")
        )
    return tuple(found)


def _of_lockstep(how: Behaviour) -> tuple[Caveat, ...]:
    if not how.lockstep:
        return ()
    message = "ranks wait for the slowest, but each rank's step is timed by its own tokens alone"
    return (Caveat("lockstep-own-tokens", message, "read the figures as a lower bound of lockstep's cost"),)


def _of_prefixes(layouts: Sequence[Layout], load: Load, kind: ReplicaKind) -> tuple[Caveat, ...]:
    if not any(each.router in ("prefix-aware", "session-sticky", "prefix-hash") for each in layouts):
        return ()
    if load.hash_block_tokens is None:
        message = (
            f"{load.title} says of no prompt that it repeats another: prefix-aware and sticky routing see only load"
        )
        return (
            Caveat("no-prefixes", message, "a workload with shared prefixes, a trace with hashes, or conversations"),
        )
    if not kind.caches:
        message = "the replicas keep no prefixes, so routing by them gains nothing"
        return (Caveat("no-prefix-cache", message, "--prefix-cache, or an engine's preset that has it on"),)
    return ()


def _growing(layouts: Sequence[Layout], rows: Mapping[tuple[int, float], FleetRow]) -> tuple[Caveat, ...]:
    return tuple(
        Caveat(
            "unstable",
            f"{layouts[which].router}, {layouts[which].title} at {rate:.3g} requests/s: {outcome.balance.reason}",
            "a lower rate, or more replicas",
        )
        for (which, rate), row in rows.items()
        for outcome in row.runs[:1]
        if outcome.balance.verdict == "growing"
    )


def _beyond(rows: Mapping[tuple[int, float], FleetRow], kind: ReplicaKind) -> tuple[Caveat, ...]:
    """A caveat where a replica has more requests under way, by Little's law, than its clock was fitted on."""
    found = [row.summary.requests_per_s * row.summary.e2e.mean / _mean_replicas(row) for row in rows.values()]
    most = max((each for each in found if isfinite(each)), default=0.0)
    cure = f"calibrate on {most:.0f} streams or more, lower the rate, or more replicas"
    return under_way_caveats(kind.estimator, most, "this load", cure)


def _mean_replicas(row: FleetRow) -> float:
    """How many there were on average, over the time of the one that was there the longest."""
    paid_s = [each.paid_s for each in row.runs[0].shares]
    return sum(paid_s) / max(paid_s) if max(paid_s) > 0 else 1.0
