"""How do several replicas behind a router serve the load, when some fail, when they scale, when prefill is apart?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options
from servewise.ask.execution import Execution, execution_of
from servewise.ask.fleet_behaviour import Apart, Mixed, apart_of, behaviour_of, mixed_of
from servewise.ask.fleet_caveats import fleet_caveats
from servewise.ask.fleet_conditions import fleet_conditions, words_of
from servewise.ask.fleet_experiment import Progress, kept_folders, run
from servewise.ask.fleet_layout import DRAWING, Behaviour, Layout, layouts_of
from servewise.ask.fleet_options import MOST_REPLICAS, Further, Split
from servewise.ask.fleet_rows import fleet_rows
from servewise.ask.fleet_run import COMMAND, FleetExperiment
from servewise.ask.fleet_servers import Group, Servers, by_clock, groups_of, longest_of, servers_of
from servewise.ask.machine import machine_of
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import whole
from servewise.ask.offered import Offered, offered_to
from servewise.ask.rows import slo_rows
from servewise.ask.run import noted
from servewise.ask.serving import PolicyOptions, WorkloadLike
from servewise.ask.speculating import DEFAULT_DRAFT_TOKENS, SpeculationOptions
from servewise.ask.sweep import Sweep, replicates_of
from servewise.caveats import unique
from servewise.errors import InputError
from servewise.executing.executor import Executor
from servewise.hardware.accelerator import Accelerator
from servewise.metrics.slo import Slo, parse_slo
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.outage import Outage
from servewise.steptime.link import LinkTime

DEFAULT_SEEDS, DEFAULT_REPLICAS = 3, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be simulated: ``layouts`` of the replicas of ``pools`` under a load, how often and where."""

    layouts: tuple[Layout, ...]
    pools: tuple[Servers, ...]
    how: Behaviour
    offered: Offered
    execution: Execution
    slo: Slo | None


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
    speculate: str | None = None,
    acceptance: float | str | Iterable[float] | None = None,
    draft_tokens: int = DEFAULT_DRAFT_TOKENS,
    draft_length: str = "fixed",
    speculate_until_batch: int | None = None,
    hit_rate: float = 1.0,
    draft_overhead: float = 0.0,
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

    ``policy``, its options and speculation (``SpeculationOptions``) are those of every replica, each on its own
    accelerator; they, ``workload``, seeds, intervals, ``executor``, ``keep`` and ``command`` are as in ``simulate``.
    ``price`` [$ per accelerator-hour] stands for the shipped one of the first accelerator.
    """
    apart = apart_of(disaggregate, replicas, decode_router=decode_router, link=link, overlap=overlap)
    mixed = mixed_of(fail, on_failure, autoscale, lockstep=lockstep)
    choices = PolicyOptions(
        slots=slots, reserve=reserve, chunked=chunked, prefix_cache=prefix_cache, settings=settings or {}
    )
    drafts = SpeculationOptions(
        speculate=speculate,
        acceptance=acceptance,
        draft_tokens=draft_tokens,
        draft_length=draft_length,
        speculate_until_batch=speculate_until_batch,
        hit_rate=hit_rate,
        draft_overhead=draft_overhead,
    )
    groups = groups_of(model, accelerator, options, _count(replicas, apart), also, price)
    _together(apart, mixed, groups, drafts)
    offered = offered_to(longest_of(groups), workload, requests, rate)
    execution = execution_of(executor, processes, keep, seed=seed, seeds=seeds, run_dir=run_dir, progress=progress)
    execution = execution.made_by(
        command or COMMAND,
        workload,
        model=model,
        draft=drafts.model,
        accelerator=accelerator,
        estimator=estimator,
        expert_load=options.get("expert_load"),
    )
    machines = [machine_of(each.deployment, estimator, offered.load, drafts) for each in groups]
    pools = tuple(servers_of(*each, policy, choices, seed) for each in zip(groups, machines, strict=True))
    how = behaviour_of(groups[0].deployment, router_settings, mixed, apart)
    layouts = layouts_of(router, by_clock(pools)[0], apart.splits, how)
    objective = parse_slo(slo) if isinstance(slo, str) else slo
    return _answer(Asked(layouts=layouts, pools=pools, how=how, offered=offered, execution=execution, slo=objective))


def _count(replicas: int | None, apart: Apart) -> int:
    """How many replicas of the first deployment there are."""
    usual = sum(apart.splits[0]) if apart.splits else DEFAULT_REPLICAS
    return whole(usual if replicas is None else replicas, "replicas", most=MOST_REPLICAS)


def _together(apart: Apart, mixed: Mixed, groups: Sequence[Group], drafts: SpeculationOptions) -> None:
    """Refuse what only servers that do both can have, where some do not."""
    if not apart.splits:
        return
    if drafts.speculate is not None:
        what = "is for servers that do both: between pools the target's KV moves alone, and a draft keeps its own"
        raise InputError(what, where="speculate", hint="leave --disaggregate out, or --speculate")
    if mixed.outages or mixed.autoscale or mixed.lockstep or len(groups) > 1:
        what = "failures, autoscaling, lockstep and further replicas are for servers that do both"
        raise InputError(what, where="disaggregate", hint="leave one of them out")


def _answer(asked: Asked) -> Answer:
    offered, execution = asked.offered, asked.execution
    door = offered.door(execution.seed)
    experiment = _experiment(asked, door.came)
    rows = run(experiment, offered.rates, execution.executor, execution.progress)
    caveats = unique(fleet_caveats(asked.pools, experiment, door, rows))
    caveats = noted(kept_folders(experiment, rows), caveats)
    slo = {"slo": None if asked.slo is None else slo_rows(asked.slo)}
    result = fleet_rows(asked.layouts, offered.rates, rows, asked.pools) | slo
    return Answer("fleet", experiment.sweep.conditions, result, caveats)


def _experiment(asked: Asked, requests: int) -> FleetExperiment:
    offered, execution, layouts, how = asked.offered, asked.execution, asked.layouts, asked.how
    draws = any(name in DRAWING for each in layouts for name in (each.router, how.decode_router))
    seeds = execution.seeds_of(drawn=offered.seeded or draws)
    sweep = Sweep(
        replicates=replicates_of(len(seeds), bracketed=all(len(each.kinds) > 1 for each in asked.pools)),
        workload=offered.load,
        seed=execution.seed,
        longest=offered.longest,
        requests=requests,
        slo=asked.slo,
        conditions=fleet_conditions(asked.pools, offered, layouts, how, seeds),
        words=tuple(f"{words_of(asked.pools, [each], how)}; {each.title}" for each in layouts),
        run_dir=execution.run_dir,
        origin=execution.origin,
        several=len(layouts) * len(offered.rates) > 1,
    )
    return FleetExperiment(layouts=layouts, kinds=by_clock(asked.pools), how=how, sweep=sweep)
