"""How long do requests wait and run under a policy, at which rates, and where does the server saturate?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options, deploy
from servewise.ask.execution import Execution, execution_of
from servewise.ask.experiment import COMMAND, Experiment, Progress, Row, kept_folders, run
from servewise.ask.machine import Machine, machine_of
from servewise.ask.moment import Moment, moment_of, write_moment
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.offered import Offered, offered_to
from servewise.ask.rows import slo_rows
from servewise.ask.run import noted
from servewise.ask.serving import (
    WINDOW_S,
    PolicyOptions,
    WorkloadLike,
    longest_context,
    policies_named,
    source_of,
)
from servewise.ask.simulate_caveats import simulate_caveats
from servewise.ask.simulate_conditions import simulate_conditions, words_of
from servewise.ask.simulate_rows import knee_rows, simulated_rows
from servewise.ask.speculating import DEFAULT_DRAFT_TOKENS, SpeculationOptions
from servewise.ask.sweep import Sweep, replicates_of
from servewise.batching.policies import Policy
from servewise.caveats import unique
from servewise.executing.executor import Executor
from servewise.metrics.slo import Slo, parse_slo
from servewise.plan.saturation import Knee
from servewise.plan.server import Server
from servewise.simulate.unit_step import UnitStep

DEFAULT_SEEDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be simulated: ``policies`` on a ``machine`` under a load, how often and where, what is told of it."""

    machine: Machine
    policies: tuple[Policy, ...]
    offered: Offered
    execution: Execution
    slo: Slo | None
    moment: Moment | None


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
    drafts = SpeculationOptions(
        speculate=speculate,
        acceptance=acceptance,
        draft_tokens=draft_tokens,
        draft_length=draft_length,
        speculate_until_batch=speculate_until_batch,
        hit_rate=hit_rate,
        draft_overhead=draft_overhead,
    )
    policies = tuple(policies_named(_names(policy), deployment, choices))
    offered = offered_to(longest_context(deployment), workload, requests, rate)
    objective = parse_slo(slo) if isinstance(slo, str) else slo
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
    machine = machine_of(deployment, estimator, offered.load, drafts, kv_blocks=kv_blocks, unit_step=unit_step)
    seen = moment_of(moment, moment_file)
    return _answer(
        Asked(machine=machine, policies=policies, offered=offered, execution=execution, slo=objective, moment=seen)
    )


def _answer(asked: Asked) -> Answer:
    machine, offered, execution = asked.machine, asked.offered, asked.execution
    servers = [machine.server(each) for each in asked.policies]
    clocks = tuple(machine.by_clock(each, execution.seed) for each in servers)
    door = offered.door(execution.seed)
    experiment = _experiment(asked, clocks, door.came)
    rows, knees = run(experiment, offered.rates, execution.executor, execution.progress)
    shown = {} if asked.moment is None else {"moment": _moment(asked, servers[0], asked.moment)}
    caveats = unique(simulate_caveats(machine, offered, door, experiment, knees, (row[0] for row in rows.values())))
    caveats = noted(kept_folders(experiment, rows), caveats)
    result = _result(asked, rows, knees) | _pool(servers[0]) | shown
    return Answer("simulate", experiment.sweep.conditions, result, caveats)


def _experiment(asked: Asked, clocks: tuple[tuple[Server, ...], ...], requests: int) -> Experiment:
    offered, execution = asked.offered, asked.execution
    seeds = execution.seeds_of(drawn=offered.seeded)
    sweep = Sweep(
        replicates=replicates_of(len(seeds), bracketed=len(clocks[0]) > 1),
        workload=offered.load,
        seed=execution.seed,
        longest=offered.longest,
        requests=requests,
        slo=asked.slo,
        conditions=simulate_conditions(asked.machine, asked.policies, offered, seeds),
        words=words_of(asked.machine, asked.policies),
        run_dir=execution.run_dir,
        origin=execution.origin,
        several=len(asked.policies) * len(offered.rates) > 1,
    )
    return Experiment(clocks=clocks, sweep=sweep)


def _result(asked: Asked, rows: Mapping[tuple[int, float], Row], knees: Sequence[Knee]) -> dict[str, Any]:
    return {
        "rows": simulated_rows(asked.policies, asked.offered.rates, rows, knees),
        "knees": knee_rows(asked.policies, knees),
        "slo": None if asked.slo is None else slo_rows(asked.slo),
        "unit_step": isinstance(asked.machine.clock, UnitStep),
    }


def _pool(server: Server) -> dict[str, Any]:
    return {"kv_blocks": server.blocks, "block_tokens": server.block_tokens}


def _moment(asked: Asked, server: Server, moment: Moment) -> dict[str, Any]:
    """What is told of the ``moment`` of the first row's first run, once it is written."""
    offered, seed = asked.offered, asked.execution.seed
    source, _ = source_of(offered.load, offered.rates[0], seed, offered.longest)
    of = {"policy": asked.policies[0].name, "rate_per_s": offered.rates[0], "seed": seed}
    return write_moment(server, source, moment, of)


def _names(policy: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([policy] if isinstance(policy, str) else policy))
