"""Under which conditions a fleet's figures hold, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite

from servewise.ask.deploying import conditions_of, hardware_of
from servewise.ask.fleet_layout import Behaviour, Layout
from servewise.ask.fleet_servers import Servers
from servewise.ask.serving import Load, is_closed, lengths_of
from servewise.conditions import Conditions
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.outage import Outage


def fleet_conditions(
    pools: Sequence[Servers],
    load: Load,
    rates: Sequence[float],
    layouts: Sequence[Layout],
    how: Behaviour,
    seeds: Iterable[int],
) -> Conditions:
    """The first replicas' conditions, with all hardware, the routers and what happens to the fleet."""
    first = pools[0]
    offered = "users in a closed loop" if is_closed(load) else f"{', '.join(f'{each:g}' for each in rates)} requests/s"
    common = conditions_of(
        first.deployment, load=offered, lengths=lengths_of(load), estimator=first.kinds[0].estimator.name
    )
    hardware = ", ".join(f"{each.count} replicas of {hardware_of(each.deployment)}" for each in pools)
    routers = ", ".join(dict.fromkeys(each.router for each in layouts))
    parts = [first.kinds[0].policy.describe, f"routed {routers}"]
    parts += [f"failures {', '.join(map(_outage, how.outages))}: {how.on_failure}"] * bool(how.outages)
    parts += [_scaled(how.autoscale)] if how.autoscale else []
    parts += ["ranks in lockstep"] * how.lockstep
    if any(each.split for each in layouts) and how.link is not None:
        parts += [
            f"KV over {how.link.name}" + (" layer by layer" if how.layers > 1 else ""),
            f"decode {how.decode_router}",
        ]
    return replace(common, hardware=hardware, policy="; ".join(parts), workload=load.title, seeds=tuple(seeds))


def _outage(each: Outage) -> str:
    return f"r{each.number} at {each.at_s:g} s " + (f"to {each.back_s:g} s" if isfinite(each.back_s) else "for good")


def _scaled(each: Autoscale) -> str:
    return (
        f"autoscaled to {each.metric} {each.target:g}{' s' if each.metric == 'wait' else ''} with {each.least} to "
        f"{each.most} replicas, asked every {each.interval_s:g} s, {each.startup_s:g} s to start"
    )
