"""Under which conditions a fleet's figures hold, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite

from servewise.ask.deploying import conditions_of
from servewise.ask.fleet_layout import Behaviour, Layout
from servewise.ask.fleet_servers import Servers
from servewise.ask.offered import Offered
from servewise.ask.serving import lengths_of
from servewise.conditions import Conditions
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import Outage


def fleet_conditions(
    pools: Sequence[Servers], offered: Offered, layouts: Sequence[Layout], how: Behaviour, seeds: Iterable[int]
) -> Conditions:
    """The first replicas' conditions, with all hardware, the routers and what happens to the fleet."""
    first, load = pools[0], offered.load
    common = conditions_of(
        first.group.deployment,
        load=offered.words,
        lengths=lengths_of(load),
        estimator=first.kinds[0].estimator.name,
    )
    hardware = ", ".join(f"{each.group.count} replicas of {each.hardware}" for each in pools)
    return replace(
        common, hardware=hardware, policy=words_of(pools, layouts, how), workload=load.title, seeds=tuple(seeds)
    )


def words_of(pools: Sequence[Servers], layouts: Sequence[Layout], how: Behaviour) -> str:
    """What serves the rows of ``layouts``."""
    return "; ".join(_parts(pools[0].kinds[0], layouts, how))


def _parts(kind: ReplicaKind, layouts: Sequence[Layout], how: Behaviour) -> list[str]:
    """The replicas' policy, the routers, and what happens to the fleet."""
    routers = ", ".join(dict.fromkeys(each.router for each in layouts))
    parts = [kind.policy.describe, f"routed {routers}"]
    parts += [f"failures {', '.join(map(_outage, how.outages))}: {how.on_failure}"] * bool(how.outages)
    parts += [_scaled(how.autoscale)] if how.autoscale else []
    parts += ["ranks in lockstep"] * how.lockstep
    if any(each.split for each in layouts) and how.link is not None:
        parts += [
            f"KV over {how.link.name}" + (" layer by layer" if how.layers > 1 else ""),
            f"decode {how.decode_router}",
        ]
    return parts


def _outage(each: Outage) -> str:
    return f"r{each.number} at {each.at_s:g} s " + (f"to {each.back_s:g} s" if isfinite(each.back_s) else "for good")


def _scaled(each: Autoscale) -> str:
    return (
        f"autoscaled to {each.metric} {each.target:g}{' s' if each.metric == 'wait' else ''} with {each.least} to "
        f"{each.most} replicas, asked every {each.interval_s:g} s, {each.startup_s:g} s to start"
    )
