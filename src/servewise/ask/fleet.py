"""How do several replicas behind a router serve the load, when some fail, when they scale, when prefill is apart?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options, conditions_of, deploy, hardware_of
from servewise.ask.experiment import replicates_of
from servewise.ask.fleet_caveats import fleet_caveats
from servewise.ask.fleet_experiment import FleetExperiment, FleetRow, Progress, run
from servewise.ask.fleet_layout import DRAWING, Behaviour, Layout, RouterSettings, router_named
from servewise.ask.fleet_options import (
    MOST_REPLICAS,
    Further,
    Split,
    autoscale_of,
    failures_of,
    further_of,
    link_of,
    splits_of,
)
from servewise.ask.fleet_rows import against, fleet_row, replica_rows
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import positives, whole
from servewise.ask.rows import slo_rows
from servewise.ask.serving import (
    Door,
    Load,
    PolicyOptions,
    WorkloadLike,
    capacity_for_serving,
    fitted,
    is_closed,
    is_seeded,
    lengths_of,
    longest_context,
    policy_named,
    shapes_of,
    workload_named,
)
from servewise.ask.settings import settings_of
from servewise.caveats import unique
from servewise.conditions import Conditions
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.hardware.accelerator import Accelerator
from servewise.metrics.slo import Slo, parse_slo
from servewise.modelspec.kv import kv_bytes
from servewise.plan.bracket import bracket
from servewise.plan.clock import clock_for
from servewise.plan.server import Server
from servewise.pricing.price import accelerator_price, stated_price
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import RULES, Outage
from servewise.steptime.link import LinkTime

DEFAULT_SEEDS, MOST_SEEDS, DEFAULT_REPLICAS = 3, 1000, 2
DEFAULT_LINK = "InfiniBand NDR"
PEEKED = 5_000  # requests whose mean lengths rank the clocks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Servers:
    """``count`` replicas of ``deployment`` by each clock: nominal, or nominal, slow and fast."""

    deployment: Deployment
    count: int
    kinds: tuple[ReplicaKind, ...]
    usd_per_hour: float | None


def fleet(
    model: ModelLike,
    accelerator: AcceleratorLike | None = None,
    *,
    workload: WorkloadLike,
    replicas: int | None = None,
    router: str | Iterable[str] = "round-robin",
    router_settings: Mapping[str, object] | None = None,
    also: str | Iterable[str | Further] = (),
    fail: str | Iterable[str | Outage] = (),
    on_failure: str = "retry",
    autoscale: str | Autoscale | None = None,
    lockstep: bool = False,
    disaggregate: str | Iterable[str | Split] = (),
    decode_router: str = "least-loaded",
    link: str | Accelerator | LinkTime | None = None,
    overlap: bool = False,
    rate: float | Iterable[float] | None = None,
    requests: int | None = None,
    policy: str = "continuous",
    slots: int | None = None,
    reserve: bool = False,
    chunked: bool = True,
    prefix_cache: bool = False,
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    seeds: int = DEFAULT_SEEDS,
    slo: str | Slo | None = None,
    estimator: str | None = None,
    price: float | None = None,
    run_dir: str | Path | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Answer:
    """Latencies, goodput, use and cost of ``replicas`` of the deployment for each ``router`` at each ``rate``.

    The rate is the fleet's. ``router``: round-robin, least-loaded, power-of-two, random, prefix-aware, session-sticky,
    with ``router_settings`` (``RouterSettings``). ``also``: further replicas on other accelerators,
    ``2:a100-80gb@0.5``. ``fail``: ``r0@60s:120s``; ``on_failure``: what requests under way do: retry, continue or fail.
    ``autoscale``: ``load=0.7,min=1,max=8,every=15s,start=2min,settle=5min``, from ``replicas`` on. ``lockstep``: data
    parallel ranks whose steps all last as long as the slowest one's.

    ``disaggregate``: splits into prefill and decode servers (``2P2D,1P3D``, or all), each compared with as many servers
    that do both; KV moves over ``link`` (a network's or an accelerator's name, ``50GB/s:10us``), with ``overlap`` layer
    by layer; answers are sent to decode servers by ``decode_router``.

    ``policy`` and what follows, ``workload``, seeds and intervals are as in ``simulate``; ``price`` [$ per
    accelerator-hour] stands for the shipped one of the first accelerator.
    """
    splits = splits_of(disaggregate, replicas)
    usual = sum(splits[0]) if splits else DEFAULT_REPLICAS
    count = whole(usual if replicas is None else replicas, "replicas", most=MOST_REPLICAS)
    deployment = _one_replica(deploy(model, accelerator, **options))
    choices = PolicyOptions(
        slots=slots, reserve=reserve, chunked=chunked, prefix_cache=prefix_cache, settings=settings or {}
    )
    further = further_of(also)
    deployments = [deployment, *(_one_replica(deploy(model, each.accelerator, **options)) for each in further)]
    longest = _longest(deployments)
    load = fitted(workload_named(workload, requests), longest)
    rates = _rates(load, rate)
    whole(seeds, "seeds", most=MOST_SEEDS)
    whole(seed, "seed", least=0)
    counts, weights = [count, *(each.count for each in further)], [1.0, *(each.weight for each in further)]
    prices = [price, *(None for _ in further)]
    pools = [
        _servers(one, many, weight, policy, choices, load, estimator, seed, usd)
        for one, many, weight, usd in zip(deployments, counts, weights, prices, strict=True)
    ]
    how = _behaviour(deployment, router_settings, fail, on_failure, autoscale, decode_router, link, lockstep=lockstep)
    how = replace(how, layers=deployment.model.layer_count if overlap else 1)
    layouts = _layouts(router, sum(counts), splits, how, pools)
    door = Door(shapes_of(load, seed), longest)
    deque(door, maxlen=0)
    objective = parse_slo(slo) if isinstance(slo, str) else slo
    random = any(name in DRAWING for each in layouts for name in (each.router, how.decode_router))
    offsets = seeds if is_seeded(load) or random else 1
    experiment = FleetExperiment(
        layouts=layouts,
        kinds=_by_clock(pools),
        how=how,
        replicates=replicates_of(offsets, bracketed=all(len(each.kinds) > 1 for each in pools)),
        workload=load,
        seed=seed,
        longest=longest,
        requests=door.came,
        slo=objective,
        conditions=_conditions(pools, load, rates, layouts, how, range(seed, seed + offsets)),
        run_dir=None if run_dir is None else Path(run_dir),
        several=len(layouts) * len(rates) > 1,
    )
    rows = run(experiment, rates, processes, progress)
    return Answer(
        command="fleet",
        conditions=experiment.conditions,
        result=_result(layouts, rates, rows, pools, objective),
        caveats=unique(fleet_caveats(load, seed, door, layouts, how, rows, pools[0].kinds[0])),
    )


def _one_replica(deployment: Deployment) -> Deployment:
    """One replica of it: data parallelism is what the fleet is."""
    split = deployment.parallelism
    if split.data > 1:
        what = f"{split.accelerators} accelerators hold {split.data} replicas"
        raise InputError(what, where="count", hint="say how many with replicas, and --tp and --pp for one of them")
    return deployment


def _longest(deployments: Sequence[Deployment]) -> int | None:
    """The longest context that every replica takes."""
    known = [found for each in deployments if (found := longest_context(each)) is not None]
    return min(known, default=None)


def _rates(load: Load, rate: float | Iterable[float] | None) -> tuple[float, ...]:
    if is_closed(load):
        if rate is not None:
            raise InputError("a closed loop has no rate", where="rate", hint="change its number of users")
        return (0.0,)
    own = getattr(load, "rate_per_s", float("inf"))
    if rate is None and not isfinite(own):
        what = "all its requests come at one moment, so it has no rate of its own"
        raise InputError(what, where=load.title, hint="give --rate, or more requests")
    return positives(own if rate is None else rate, "rate")


def _servers(
    deployment: Deployment,
    count: int,
    weight: float,
    policy: str,
    choices: PolicyOptions,
    load: Load,
    estimator: str | None,
    seed: int,
    price: float | None,
) -> _Servers:
    capacity = capacity_for_serving(deployment)
    server = Server(
        policy=policy_named(policy, deployment, choices),
        estimator=clock_for(deployment, estimator),
        blocks=capacity.blocks,
        block_tokens=capacity.block_tokens,
        hash_block_tokens=load.hash_block_tokens,
        deployment=deployment,
    )
    shapes = list(islice(Door(shapes_of(load, seed), longest_context(deployment)), PEEKED))
    if not shapes:
        raise InputError("has no request that the model's context holds", where=load.title, hint="see --max-context")
    spread = bracket(deployment, estimator, server, shapes, seed)
    clocks = (server.estimator,) if spread is None else (server.estimator, spread.slow, spread.fast)
    kinds = tuple(
        ReplicaKind(
            policy=server.policy,
            estimator=clock,
            blocks=server.blocks,
            block_tokens=server.block_tokens,
            hash_block_tokens=server.hash_block_tokens,
            deployment=deployment,
            weight=weight,
        )
        for clock in clocks
    )
    known = stated_price(price, "price") if price is not None else accelerator_price(deployment.accelerator.name)
    return _Servers(
        deployment=deployment, count=count, kinds=kinds, usd_per_hour=None if known is None else known.usd_per_hour
    )


def _by_clock(pools: Sequence[_Servers]) -> tuple[tuple[ReplicaKind, ...], ...]:
    """All replicas by each clock that every pool has."""
    clocks = min(len(each.kinds) for each in pools)
    return tuple(tuple(each.kinds[clock] for each in pools for _ in range(each.count)) for clock in range(clocks))


def _behaviour(
    deployment: Deployment,
    router_settings: Mapping[str, object] | None,
    fail: str | Iterable[str | Outage],
    on_failure: str,
    autoscale: str | Autoscale | None,
    decode_router: str,
    link: str | Accelerator | LinkTime | None,
    *,
    lockstep: bool,
) -> Behaviour:
    if on_failure not in RULES:
        raise InputError(
            f"{on_failure!r} is no rule for failures", where="on_failure", hint=f"one of {', '.join(RULES)}"
        )
    split = deployment.parallelism
    over = link_of(DEFAULT_LINK if link is None else link)
    ranks = split.tensor * split.pipeline
    return Behaviour(
        settings=RouterSettings(**settings_of(RouterSettings, router_settings or {})),
        outages=failures_of(fail),
        on_failure=on_failure,
        autoscale=autoscale_of(autoscale),
        lockstep=lockstep,
        decode_router=decode_router,
        link=replace(over, bytes_per_s=over.bytes_per_s * ranks),
        kv_bytes=partial(_kv_bytes_of_all_ranks, deployment),
    )


def _kv_bytes_of_all_ranks(deployment: Deployment, tokens: int) -> float:
    """What the ranks of one server send of a prompt of ``tokens`` tokens, each its own shard [bytes]."""
    split = deployment.parallelism
    one = kv_bytes(deployment.model, tokens, deployment.kv, tensor=split.tensor)
    return one * split.tensor / split.decode_context


def _layouts(
    router: str | Iterable[str], replicas: int, splits: Sequence[Split], how: Behaviour, pools: Sequence[_Servers]
) -> tuple[Layout, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in ([router] if isinstance(router, str) else router)))
    for name in (*names, how.decode_router):
        router_named(name, how.settings, pools[0].kinds[0], 0)
    if not names:
        raise InputError("none is named", where="router")
    if splits and (how.outages or how.autoscale or how.lockstep or len(pools) > 1):
        what = "failures, autoscaling, lockstep and further replicas are for servers that do both"
        raise InputError(what, where="disaggregate", hint="leave one of them out")
    between = None if how.autoscale is None else (how.autoscale.least, how.autoscale.most)
    mixed = [Layout(router=name, replicas=replicas, between=between) for name in names]
    return (*mixed, *(Layout(router=name, replicas=replicas, split=split) for split in splits for name in names))


def _conditions(
    pools: Sequence[_Servers],
    load: Load,
    rates: Sequence[float],
    layouts: Sequence[Layout],
    how: Behaviour,
    seeds: Iterable[int],
) -> Conditions:
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


def _result(
    layouts: Sequence[Layout],
    rates: Sequence[float],
    rows: Mapping[tuple[int, float], FleetRow],
    pools: Sequence[_Servers],
    slo: Slo | None,
) -> dict[str, Any]:
    each = [one for one in pools for _ in range(one.count)]
    accelerators = [one.deployment.parallelism.accelerators for one in each]
    prices, names = [one.usd_per_hour for one in each], [hardware_of(one.deployment) for one in each]
    found, by_replica = [], []
    for at in rates:
        mixed: dict[str, dict[str, Any]] = {}
        for which, layout in enumerate(layouts):
            row = fleet_row(layout, at, rows[which, at], accelerators, prices)
            if layout.split is None:
                mixed[layout.router] = row
            row["against_mixed"] = None if layout.split is None else against(row, mixed[layout.router])
            found.append(row)
            by_replica += replica_rows(layout, at, rows[which, at], names)
    return {"rows": found, "replicas": by_replica, "slo": None if slo is None else slo_rows(slo)}
