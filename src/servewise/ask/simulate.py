"""How long do requests wait and run under a policy, at which rates, and where does the server saturate?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options, conditions_of, deploy
from servewise.ask.experiment import COMMAND, Experiment, Progress, Row, kept_folders, replicates_of, run
from servewise.ask.moment import window_of, writable, write_moment
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import positives, whole
from servewise.ask.origin import origin_of
from servewise.ask.rows import simulated_row, slo_rows
from servewise.ask.serving import (
    WINDOW_S,
    Door,
    Load,
    PolicyOptions,
    WorkloadLike,
    capacity_for_serving,
    caveats_of,
    describe,
    fitted,
    is_closed,
    is_seeded,
    lengths_of,
    longest_context,
    outgrown_caveats,
    policies_named,
    refused_caveats,
    shapes_of,
    source_of,
    workload_named,
)
from servewise.ask.speculating import (
    DEFAULT_DRAFT_TOKENS,
    Speculating,
    SpeculationOptions,
    speculating,
    speculation_row,
)
from servewise.batching.policies import Policy
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.executing.executor import Executor, executor_named
from servewise.metrics.slo import Slo, parse_slo
from servewise.metrics.summary import RunSummary
from servewise.plan.bracket import bracket
from servewise.plan.clock import clock_for
from servewise.plan.saturation import Knee
from servewise.plan.server import Server
from servewise.records.noted import note_caveats
from servewise.records.origin import Origin
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.estimator import Estimator
from servewise.steptime.ranges import under_way_caveats
from servewise.workload.synthetic import ClosedLoop

DEFAULT_SEEDS = 5
MOST_SEEDS = 1000
MOMENT_FILE = "servewise-moment.json"
PEEKED = 5_000  # requests whose mean lengths rank the clocks


def simulate(
    model: ModelLike,
    accelerator: AcceleratorLike | None = None,
    *,
    workload: WorkloadLike,
    requests: int | None = None,
    policy: str | Iterable[str] = "continuous",
    rate: float | Iterable[float] | None = None,
    slots: int | None = None,
    window: float = WINDOW_S,
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
    kv_blocks: int | None = None,
    unit_step: bool = False,
    seed: int = 0,
    seeds: int = DEFAULT_SEEDS,
    slo: str | Slo | None = None,
    estimator: str | None = None,
    run_dir: str | Path | None = None,
    moment: str | None = None,
    moment_file: str | Path | None = None,
    processes: int = 1,
    executor: str | Executor = "local",
    keep: str | Path | None = None,
    command: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Answer:
    """Latencies, goodput and utilisation of one replica for each ``policy`` at each ``rate`` [requests/s].

    ``workload``: a built-in name, a workload file, a trace, or a Workload, cut or repeated to ``requests``; ``rate``
    None: its own. ``slots``: sequences at once; ``window`` [s]: how long dynamic batching waits; ``reserve``: blocks
    for the whole answer are taken at admission; ``chunked``: prompts may be split over steps; ``unit_step``: every step
    costs 1 s. A ``policy`` may be an engine's own scheduler (vllm, sglang, trtllm, llamacpp), with ``settings`` by the
    engine's names; slots, reserve, chunked and prefix_cache are not for those. ``speculate`` and what belongs to it:
    see ``SpeculationOptions``. ``kv_blocks``: the pool as the engine's log tells it, instead of the computed one.

    Intervals are of ``seeds`` seeds from ``seed`` on (a trace has none) and of the estimator's coefficients, as
    ``ask.replicates`` says. ``knees`` are where each policy saturates (see ``plan.saturation``); a row is ``stable``
    below it, unless its backlog grew. ``run_dir`` gets the first seed's run of each row; ``moment_file`` what every
    request and step did in the window ``moment`` (``60s:70s``) of the first row, for chrome://tracing or
    ui.perfetto.dev. More than one of ``processes`` needs the caller's script to have ``if __name__ == "__main__":``.
    ``executor``: ``local``, or a Ray cluster: ``ray``, ``ray://host:port``, ``host:port``; ``keep``: a folder for what
    each finished run gave, from which the same call goes on (``executing.Executor``). Neither changes the answer.
    ``command``: the line that asks, which kept runs hold.
    """
    deployment = deploy(model, accelerator, **options)
    choices = PolicyOptions(
        slots=slots,
        window_s=window,
        reserve=reserve,
        chunked=chunked,
        prefix_cache=prefix_cache,
        settings=settings or {},
    )
    policies = policies_named(_names(policy), deployment, choices)
    load = fitted(workload_named(workload, requests), longest_context(deployment))
    rates = _rates(load, rate)
    objective = parse_slo(slo) if isinstance(slo, str) else slo
    where = executor_named(executor, processes, keep)
    files = {"model": model, "accelerator": accelerator, "estimator": estimator}
    keeps = run_dir is not None or where.keep is not None
    line = command or COMMAND
    origin = origin_of(line, workload, **files) if keeps else Origin(command=line)
    whole(seeds, "seeds", most=MOST_SEEDS)
    whole(seed, "seed", least=0)
    clock = UnitStep() if unit_step else clock_for(deployment, estimator)
    drafting = _speculating(
        deployment,
        clock,
        estimator,
        speculate,
        acceptance=acceptance,
        draft_tokens=draft_tokens,
        draft_length=draft_length,
        speculate_until_batch=speculate_until_batch,
        hit_rate=hit_rate,
        draft_overhead=draft_overhead,
    )
    servers = [_server(deployment, each, clock, load, drafting, kv_blocks) for each in policies]
    clocks = tuple(_clocks(deployment, "unit" if unit_step else estimator, each, load, seed) for each in servers)
    seen = _window(moment, moment_file)
    seen_file = None if seen is None else writable(Path(moment_file or MOMENT_FILE))
    door = _door(load, seed, longest_context(deployment))
    seeded = is_seeded(load)
    offsets = seeds if seeded else 1
    experiment = Experiment(
        clocks=clocks,
        replicates=replicates_of(offsets, bracketed=len(clocks[0]) > 1),
        workload=load,
        seed=seed,
        longest=longest_context(deployment),
        requests=door.came,
        slo=objective,
        conditions=_conditions(
            deployment,
            [drafting.policy(each) if drafting else each for each in policies],
            load,
            rates,
            clock,
            range(seed, seed + offsets),
        ),
        run_dir=None if run_dir is None else Path(run_dir),
        several=len(policies) * len(rates) > 1,
        origin=origin,
    )
    rows, knees = run(experiment, rates, replace(where, sources=origin.sources), progress)
    shown: dict[str, Any] = {}
    if seen is not None and seen_file is not None:
        source, _ = source_of(load, rates[0], seed, longest_context(deployment))
        of = {"policy": policies[0].name, "rate_per_s": rates[0], "seed": seed}
        shown = {"moment": write_moment(servers[0], source, seen, seen_file, of)}
    caveats = unique(
        clock.caveats
        + (() if drafting is None else drafting.caveats)
        + caveats_of(load)
        + _given_pool(deployment, kv_blocks)
        + _staged(deployment)
        + _traced(load, seeded=seeded, drawn=len(clocks[0]) > 1)
        + refused_caveats(door.refused, door.came, door.longest)
        + outgrown_caveats(load, seed)
        + _unstable(policies, rates, knees)
        + _beyond(clock, max((row[0] for row in rows.values()), key=_under_way))
    )
    note_caveats(kept_folders(experiment, rows), caveats)
    return Answer(
        command="simulate",
        conditions=experiment.conditions,
        result=_result(policies, rates, rows, knees, objective, unit_step=unit_step)
        | {"kv_blocks": servers[0].blocks, "block_tokens": servers[0].block_tokens}
        | shown,
        caveats=caveats,
    )


def _staged(deployment: Deployment) -> tuple[Caveat, ...]:
    if deployment.parallelism.pipeline == 1:
        return ()
    message = (
        "pipeline stages: beside six published runs of TensorRT-LLM throughput came out 22-44% too low; four stages "
        "against two were 10% off in the middle, 29% at worst"
    )
    return (Caveat("pipeline-lanes", message, "judge --pp against --tp by a measurement"),)


def _given_pool(deployment: Deployment, kv_blocks: int | None) -> tuple[Caveat, ...]:
    if kv_blocks is None:
        return ()
    capacity = capacity_for_serving(deployment)
    size = capacity.block_tokens
    message = f"the KV pool is {kv_blocks:,} blocks of {size} tokens as given; {capacity.blocks:,} are computed"
    return (Caveat("given-pool", message, "leave --kv-blocks out for the computed one"),)


def _window(moment: str | None, file: str | Path | None) -> tuple[float, float] | None:
    if moment is None and file is not None:
        raise InputError("says where to write a moment, but not which", where="moment_file", hint="give --moment too")
    return None if moment is None else window_of(moment)


def _conditions(
    deployment: Deployment,
    policies: Sequence[Policy],
    load: Load,
    rates: Sequence[float],
    clock: Estimator,
    seeds: Iterable[int],
) -> Conditions:
    common = conditions_of(deployment, load=_load(load, rates), lengths=lengths_of(load), estimator=clock.name)
    return replace(common, policy="; ".join(map(describe, policies)), workload=load.title, seeds=tuple(seeds))


def _clocks(deployment: Deployment, estimator: str | None, server: Server, load: Load, seed: int) -> tuple[Server, ...]:
    """``server`` by its nominal clock, and by the slow and the fast one where the coefficients have a spread."""
    shapes = list(islice(Door(shapes_of(load, seed), longest_context(deployment)), PEEKED))
    if not shapes:
        raise InputError("has no request that the model's context holds", where=load.title, hint="see --max-context")
    found = bracket(deployment, estimator, server, shapes, seed)
    return (server,) if found is None else (server, server.timed_by(found.slow), server.timed_by(found.fast))


def _rates(load: Load, rate: float | Iterable[float] | None) -> tuple[float, ...]:
    """The rates asked for; a closed loop has none, and one row."""
    if not is_closed(load):
        assert not isinstance(load, ClosedLoop)
        if rate is None and not isfinite(load.rate_per_s):
            what = "all its requests come at one moment, so it has no rate of its own"
            raise InputError(what, where=load.title, hint="give more requests, at different times")
        return positives(load.rate_per_s if rate is None else rate, "rate")
    if rate is not None:
        raise InputError(
            "a closed loop has no rate", where="rate", hint="change its concurrency, or leave the rate out"
        )
    return (0.0,)


def _load(load: Load, rates: Sequence[float]) -> str:
    if is_closed(load):
        users = load.concurrency if isinstance(load, ClosedLoop) else getattr(load, "users", None)
        return f"{users} users in a closed loop"
    return f"{', '.join(f'{each:g}' for each in rates)} requests/s"


def _names(policy: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([policy] if isinstance(policy, str) else policy))


def _server(
    deployment: Deployment,
    policy: Policy,
    clock: Estimator,
    load: Load,
    drafting: Speculating | None,
    kv_blocks: int | None,
) -> Server:
    capacity = capacity_for_serving(deployment)
    if kv_blocks is not None:
        whole(kv_blocks, "kv_blocks")
    if drafting is not None:
        drafting.policy(policy)  # refused where it does not speculate
    return Server(
        policy=policy,
        estimator=clock,
        blocks=kv_blocks or (capacity.blocks if drafting is None else drafting.blocks(capacity)),
        block_tokens=capacity.block_tokens,
        hash_block_tokens=load.hash_block_tokens,
        deployment=deployment,
        speculation=None if drafting is None else drafting.speculation,
    )


def _speculating(
    deployment: Deployment, clock: Estimator, estimator: str | None, speculate: str | None, **options: Any
) -> Speculating | None:
    """How it speculates, None: not at all; InputError for options without ``speculate``, or without their rates."""
    usual = {each.name: each.default for each in fields(SpeculationOptions)} | {"acceptance": None}
    if speculate is None:
        asked = [name for name, value in options.items() if value != usual[name]]
        if asked:
            raise InputError("says how to speculate, but nothing does", where=asked[0], hint="give --speculate too")
        return None
    if options["acceptance"] is None:
        hint = "e.g. --acceptance 0.7 or, by position, 0.8,0.7,0.6"
        raise InputError("speculation needs the share of drafts that stand", where="acceptance", hint=hint)
    return speculating(deployment, clock, SpeculationOptions(speculate=speculate, **options), estimator)


def _result(
    policies: Sequence[Policy],
    rates: Sequence[float],
    rows: dict[tuple[int, float], Row],
    knees: Sequence[Knee],
    slo: Slo | None,
    *,
    unit_step: bool,
) -> dict[str, Any]:
    return {
        "rows": [
            _row(policy, rate, rows[which, rate], knees[which])
            for which, policy in enumerate(policies)
            for rate in rates
        ],
        "knees": [
            {"policy": policy.name, "low_per_s": knee.low_per_s, "high_per_s": knee.high_per_s}
            for policy, knee in zip(policies, knees, strict=True)
        ],
        "slo": None if slo is None else slo_rows(slo),
        "unit_step": unit_step,
    }


def _under_way(summary: RunSummary) -> float:
    """Requests under way, by Little's law; 0 where none completed."""
    found = summary.requests_per_s * summary.e2e.mean
    return found if isfinite(found) else 0.0


def _beyond(clock: Estimator, summary: RunSummary) -> tuple[Caveat, ...]:
    """A caveat where more requests are under way than the clock was fitted on."""
    under_way = _under_way(summary)
    cure = f"calibrate on {under_way:.0f} streams or more, or lower the rate"
    return under_way_caveats(clock, under_way, f"{summary.requests_per_s:.3g} requests/s", cure)


def _row(policy: Policy, rate: float, row: Row, knee: Knee) -> dict[str, Any]:
    summary, balance, _ = row
    found = simulated_row(policy.name, rate or summary.requests_per_s, summary, slots=policy.slots)
    below = rate < knee.low_per_s and balance.verdict != "growing"
    found |= {} if row.tally is None else speculation_row(row.tally)
    return found | {"stable": below, "balance": balance.verdict, "backlog_growth_per_s": balance.growth_per_s}


def _traced(load: Load, *, seeded: bool, drawn: bool) -> tuple[Caveat, ...]:
    if seeded:
        return ()
    of = "from its own spread over time" + (" and from that of the coefficients" if drawn else "")
    message = f"{load.title} is replayed as it came, whatever the seed: intervals are {of}"
    return (Caveat("replayed-trace", message, "a synthetic workload of the same lengths varies with the seed"),)


def _door(load: Load, seed: int, longest: int | None) -> Door:
    """The door after all of the first seed's requests have come to it."""
    door = Door(shapes_of(load, seed), longest)
    deque(door, maxlen=0)
    return door


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
