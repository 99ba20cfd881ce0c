"""How do several replicas behind a router serve the load, when some fail, when they scale, when prefill is apart?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options, deploy, hardware_of
from servewise.ask.experiment import replicates_of
from servewise.ask.fleet_caveats import fleet_caveats
from servewise.ask.fleet_conditions import fleet_conditions
from servewise.ask.fleet_experiment import FleetRow, Progress, kept_folders, run
from servewise.ask.fleet_layout import DRAWING, Behaviour, Layout, router_named
from servewise.ask.fleet_options import (
    MOST_REPLICAS,
    Further,
    Split,
    further_of,
    splits_of,
)
from servewise.ask.fleet_rows import against, fleet_row, replica_rows
from servewise.ask.fleet_run import COMMAND, FleetExperiment
from servewise.ask.fleet_servers import Servers, behaviour_of, by_clock, longest_of, one_replica, servers_of
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import positives, whole
from servewise.ask.origin import origin_of
from servewise.ask.rows import slo_rows
from servewise.ask.serving import (
    Door,
    Load,
    PolicyOptions,
    WorkloadLike,
    fitted,
    is_closed,
    is_seeded,
    shapes_of,
    workload_named,
)
from servewise.caveats import unique
from servewise.errors import InputError
from servewise.executing.executor import Executor, executor_named
from servewise.hardware.accelerator import Accelerator
from servewise.metrics.slo import Slo, parse_slo
from servewise.records.noted import note_caveats
from servewise.records.origin import Origin
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.outage import RULES, Outage
from servewise.steptime.link import LinkTime

DEFAULT_SEEDS, MOST_SEEDS, DEFAULT_REPLICAS = 3, 1000, 2


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
    executor: str | Executor = "local",
    keep: str | Path | None = None,
    command: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Answer:
    """Latencies, goodput, use and cost of ``replicas`` of the deployment for each ``router`` at each ``rate``.

    The rate is the fleet's. ``router``: round-robin, least-loaded, power-of-two, random, prefix-aware, session-sticky,
    prefix-hash, with ``router_settings`` (``RouterSettings``). ``also``: further replicas on other accelerators,
    ``2:a100-80gb@0.5``. ``fail``: ``r0@60s:120s``; ``on_failure``: what requests under way do: retry, continue or fail.
    ``autoscale``: ``load=0.7,min=1,max=8,every=15s,start=2min,settle=5min``, from ``replicas`` on. ``lockstep``: data
    parallel ranks whose steps all last as long as the slowest one's.

    ``disaggregate``: splits into prefill and decode servers (``2P2D,1P3D``, or all), each compared with as many servers
    that do both; KV moves over ``link`` (a network's or an accelerator's name, ``50GB/s:10us``), with ``overlap`` layer
    by layer; answers are sent to decode servers by ``decode_router``.

    ``policy`` and what follows, ``workload``, seeds, intervals, ``executor``, ``keep`` and ``command`` are as in
    ``simulate``; ``price`` [$ per accelerator-hour] stands for the shipped one of the first accelerator.
    """
    splits = splits_of(disaggregate, replicas)
    _belongs(link=link, overlap=overlap, decode_router=decode_router, on_failure=on_failure, apart=splits, fail=fail)
    usual = sum(splits[0]) if splits else DEFAULT_REPLICAS
    count = whole(usual if replicas is None else replicas, "replicas", most=MOST_REPLICAS)
    deployment = one_replica(deploy(model, accelerator, **options))
    choices = PolicyOptions(
        slots=slots, reserve=reserve, chunked=chunked, prefix_cache=prefix_cache, settings=settings or {}
    )
    further = further_of(also)
    deployments = [deployment, *(one_replica(deploy(model, each.accelerator, **options)) for each in further)]
    longest = longest_of(deployments)
    load = fitted(workload_named(workload, requests), longest)
    rates = _rates(load, rate)
    whole(seeds, "seeds", most=MOST_SEEDS)
    whole(seed, "seed", least=0)
    counts, weights = [count, *(each.count for each in further)], [1.0, *(each.weight for each in further)]
    prices = [price, *(None for _ in further)]
    pools = [
        servers_of(one, many, weight, policy, choices, load, estimator, seed, usd)
        for one, many, weight, usd in zip(deployments, counts, weights, prices, strict=True)
    ]
    how = behaviour_of(deployment, router_settings, fail, on_failure, autoscale, decode_router, link, lockstep=lockstep)
    how = replace(how, layers=deployment.model.layer_count if overlap else 1)
    layouts = _layouts(router, sum(counts), splits, how, pools)
    door = Door(shapes_of(load, seed), longest)
    deque(door, maxlen=0)
    objective = parse_slo(slo) if isinstance(slo, str) else slo
    where = executor_named(executor, processes, keep)
    files = {"model": model, "accelerator": accelerator, "estimator": estimator}
    keeps = run_dir is not None or where.keep is not None
    line = command or COMMAND
    origin = origin_of(line, workload, **files) if keeps else Origin(command=line)
    random = any(name in DRAWING for each in layouts for name in (each.router, how.decode_router))
    offsets = seeds if is_seeded(load) or random else 1
    experiment = FleetExperiment(
        layouts=layouts,
        kinds=by_clock(pools),
        how=how,
        replicates=replicates_of(offsets, bracketed=all(len(each.kinds) > 1 for each in pools)),
        workload=load,
        seed=seed,
        longest=longest,
        requests=door.came,
        slo=objective,
        conditions=fleet_conditions(pools, load, rates, layouts, how, range(seed, seed + offsets)),
        run_dir=None if run_dir is None else Path(run_dir),
        several=len(layouts) * len(rates) > 1,
        origin=origin,
    )
    rows = run(experiment, rates, replace(where, sources=origin.sources), progress)
    caveats = unique(fleet_caveats(load, seed, door, layouts, how, rows, pools[0].kinds[0]))
    note_caveats(kept_folders(experiment, rows), caveats)
    return Answer("fleet", experiment.conditions, _result(layouts, rates, rows, pools, objective), caveats)


def _belongs(*, apart: object, fail: object, **given: object) -> None:
    """Refuse what would be ignored: what belongs to servers apart, or to failures, where there are none."""
    usual = {"link": None, "overlap": False, "decode_router": "least-loaded"}
    for name, default in usual.items():
        if not apart and given[name] != default:
            raise InputError("is of prefill and decode apart", where=name, hint="give --disaggregate, or leave it out")
    if not fail and given["on_failure"] != "retry" and given["on_failure"] in RULES:
        raise InputError("says what failures do, but none is given", where="on_failure", hint="give --fail too")


def _rates(load: Load, rate: float | Iterable[float] | None) -> tuple[float, ...]:
    if is_closed(load):
        if rate is not None:
            raise InputError("a closed loop has no rate", where="rate", hint="change its number of users")
        return (0.0,)
    own = getattr(load, "rate_per_s", float("inf"))
    if rate is None and not isfinite(own):
        what = "all its requests come at one moment, so it has no rate of its own"
        raise InputError(what, where=load.title, hint="give more requests, at different times")
    return positives(own if rate is None else rate, "rate")


def _layouts(
    router: str | Iterable[str], replicas: int, splits: Sequence[Split], how: Behaviour, pools: Sequence[Servers]
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


def _result(
    layouts: Sequence[Layout],
    rates: Sequence[float],
    rows: Mapping[tuple[int, float], FleetRow],
    pools: Sequence[Servers],
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
