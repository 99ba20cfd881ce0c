"""Which deployment keeps the SLO at the least cost, why the others lose, and what would move the winner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from servewise.answer import Answer
from servewise.ask.deploying import DEFAULT_ENGINE, engine_named
from servewise.ask.launching import fetched_as, launches_of, targets_named
from servewise.ask.names import (
    AcceleratorLike,
    ModelLike,
    PrecisionLike,
    accelerator_named,
    model_named,
    precision_named,
    with_kv_heads,
)
from servewise.ask.numbers import positive, share, whole, wholes
from servewise.ask.origin import origin_of
from servewise.ask.planned import caveats_of, result_of
from servewise.ask.presets import PRESETS
from servewise.ask.serving import (
    POLICIES,
    WINDOW_S,
    Door,
    Load,
    WorkloadLike,
    is_seeded,
    lengths_of,
    refused_caveats,
    workload_named,
)
from servewise.ask.serving import caveats_of as workload_caveats
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.deployment.deployment import Limits
from servewise.errors import InputError, UnknownName
from servewise.executing.executor import Executor, executor_named
from servewise.hardware.accelerator import Accelerator
from servewise.metrics.slo import Slo, parse_slo
from servewise.plan.candidates import DEFAULT_COUNTS, Listed, Space, listed
from servewise.plan.clock import kind_for
from servewise.plan.planner import STRETCH, Progress, find_plan
from servewise.plan.question import Question
from servewise.plan.screening import Tell
from servewise.plan.traffic import Traffic, stretches, traffic_of
from servewise.pricing.price import accelerator_price, stated_price
from servewise.version import __version__
from servewise.workload.conversations import Conversations
from servewise.workload.synthetic import ClosedLoop
from servewise.workload.workload import Workload

T = TypeVar("T")
OTHERS = 4
TOP = 20
MOST_COUNT = 1024


def plan(
    model: ModelLike,
    accelerators: AcceleratorLike | Iterable[AcceleratorLike],
    *,
    workload: WorkloadLike,
    requests: int | None = None,
    slo: str | Slo,
    rate: float | None = None,
    max_accelerators: int | None = None,
    top: int | None = TOP,
    prune: bool = True,
    counts: int | Iterable[int] = DEFAULT_COUNTS,
    pp: int | Iterable[int] = 1,
    weights: PrecisionLike | Iterable[PrecisionLike] | None = None,
    kv: PrecisionLike | Iterable[PrecisionLike] | None = None,
    engine: str | Iterable[str] = DEFAULT_ENGINE,
    policy: str | Iterable[str] = "continuous",
    slots: int | Iterable[int] | None = None,
    max_batched_tokens: int | Iterable[int] | None = None,
    window: float = WINDOW_S,
    chunked: bool | Iterable[bool] = True,
    prefix_cache: bool | Iterable[bool] = False,
    memory_utilization: float | Iterable[float] | None = None,
    max_context: int | None = None,
    kv_heads: int | None = None,
    prices: str | Path | Mapping[str, float] | None = None,
    estimator: str | None = None,
    emit: str | Iterable[str] = (),
    seed: int = 0,
    processes: int = 1,
    executor: str | Executor = "local",
    keep: str | Path | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Answer:
    """The deployments of ``model`` that keep ``slo`` on ``workload``, ranked, with reasons.

    Candidates are the product of ``accelerators``, ``counts`` (accelerators of a replica, tensor parallel but for the
    ``pp`` pipeline stages), ``weights``, ``kv``, ``engine``, ``policy``, and of the engine's settings ``slots``
    (max_num_seqs), ``max_batched_tokens`` (max_num_batched_tokens), ``chunked`` (prefill), ``prefix_cache`` and
    ``memory_utilization``. Each is one replica; its highest rate is that of the workload, scaled in time, at which the
    SLO still holds (TTFT counts from the arrival, queue included). ``rate`` [requests/s]: rank by the cost of as many
    replicas as carry it, on ``max_accelerators`` at most; None: by the cost of an output token at the highest rate.

    The ``top`` of them are ranked, None: all. Candidates that cannot be among them by physical bounds are not
    simulated; ``pruning`` counts them by reason. ``prune`` False simulates all, for the same answer. ``progress``
    hears of candidates done and all, ``tell`` of how many are pruned, simulated and left. ``prices``: a TOML file or
    dollars per accelerator-hour by name, over the shipped quotes. That nothing keeps the SLO is an answer:
    ``recommendation`` None, with ``closest``. ``launch`` starts the recommendation: for the plan's engine, or for
    those that ``emit`` names (vllm, sglang, trtllm, llamacpp, kubernetes). ``executor`` and ``keep`` are as in
    ``simulate``.
    """
    targets = targets_named(emit)
    spec = with_kv_heads(model_named(model), kv_heads)
    chips = tuple(accelerator_named(each) for each in _several(accelerators))
    objective = parse_slo(slo) if isinstance(slo, str) else slo
    where = executor_named(executor, processes, keep)
    asked = None if rate is None else positive(rate, "rate")
    load = _open(workload_named(workload, requests))
    space = Space(
        model=spec,
        accelerators=chips,
        counts=wholes(counts, "counts"),
        pipelines=wholes(pp, "pp"),
        weights=_each(weights, lambda each: precision_named(each, "weights")),
        kv=_each(kv, lambda each: precision_named(each, "kv")),
        engines=tuple(engine_named(each) for each in _several(engine)),
        policies=tuple(_policy(each) for each in _several(policy)),
        slots=_each(slots, lambda each: whole(each, "slots")),
        batched_tokens=_each(max_batched_tokens, lambda each: whole(each, "max_batched_tokens")),
        memory_utilization=_each(memory_utilization, lambda each: share(each, "memory_utilization")),
        chunked_prefill=_several(chunked),
        prefix_cache=_several(prefix_cache),
        limits=Limits(max_context_tokens=None if max_context is None else whole(max_context, "max_context")),
        window_s=positive(window, "window"),
    )
    door = Door(load.requests(whole(seed, "seed", least=0)), max_context or spec.max_context_tokens)
    traffic = traffic_of(list(door))
    space_listed = listed(space)
    question = Question(
        candidates=space_listed.candidates,
        traffic=traffic,
        slo=objective,
        prices=_prices(chips, prices),
        rate_per_s=None if asked is None else asked * len(traffic.requests) / door.came,
        estimator=estimator,
        hash_block_tokens=load.hash_block_tokens,
        others=_others(load, traffic, seed, door.longest),
        seed=seed,
        top=None if top is None else whole(top, "top"),
        most_accelerators=None if max_accelerators is None else whole(max_accelerators, "max_accelerators"),
        prunes=prune,
    )
    if where.keep is not None:
        where = replace(where, sources=origin_of("", workload, prices=prices, estimator=estimator).sources)
    found = find_plan(question, where, progress, tell)
    kinds = {kind_for(each.deployment, estimator) for each in question.candidates}
    launches = launches_of(question, found, fetched_as(model, spec.name), targets, space.limits.max_context_tokens)
    return Answer(
        command="plan",
        conditions=_conditions(space, load, asked, seed, kinds),
        result=result_of(question, found, asked) | {"launch": launches},
        caveats=unique(
            (
                *workload_caveats(load),
                *refused_caveats(door.refused, door.came, door.longest),
                *left_out_caveats(space_listed),
                *caveats_of(question, found),
            )
        ),
    )


def left_out_caveats(space: Listed) -> tuple[Caveat, ...]:
    """What a reader must know of combinations of settings that engines refuse."""
    return tuple(
        Caveat("left-out", f"{count} combinations of settings are no candidates: {why}", "other slots or tokens a step")
        for why, count in space.refused.items()
    )


def _several(values: Any) -> tuple[Any, ...]:
    """One value or several, as several; names are told apart, repeats dropped."""
    single = isinstance(values, (str, Accelerator)) or not isinstance(values, Iterable)
    several = (values,) if single else tuple(values)
    return tuple(each for place, each in enumerate(several) if each not in several[:place])


def _each(values: Any, check: Callable[[Any], T]) -> tuple[T | None, ...]:
    """One value or several, checked; None is the one value that stands for the usual."""
    return (None,) if values is None else tuple(check(each) for each in _several(values))


def _policy(name: str) -> str:
    if name in PRESETS:
        what = f"a plan weighs the plain policies, not {name}'s own scheduler"
        raise InputError(what, where="policy", hint=f"one of {', '.join(POLICIES)}; then simulate --policy {name}")
    if name not in POLICIES:
        raise UnknownName("policy", str(name), POLICIES, where="policy", hint=f"one of {', '.join(POLICIES)}")
    return name


def _open(load: Load) -> Workload:
    if isinstance(load, ClosedLoop):
        raise InputError("a closed loop has no rate to plan for", where="workload", hint="use arrivals or a trace")
    if isinstance(load, Conversations):
        what = "conversations wait for their answers, and a plan scales the times of requests"
        raise InputError(what, where="workload", hint="plan with chat or azure-conv, then simulate the winner")
    return load


def _prices(chips: Iterable[Accelerator], prices: str | Path | Mapping[str, float] | None) -> dict[str, float]:
    """Dollars per accelerator-hour of those that have a price."""
    if isinstance(prices, Mapping):
        names = [each.name for each in chips]
        unknown = [name for name in prices if name not in names]
        if unknown:
            raise UnknownName("accelerator", unknown[0], names, where="prices", hint=f"one of {', '.join(names)}")
        own = {name: stated_price(value, f"price of {name}").usd_per_hour for name, value in prices.items()}
        return _prices([each for each in chips if each.name not in own], None) | own
    path = None if prices is None else str(prices)
    found = {each.name: accelerator_price(each.name, path) for each in chips}
    return {name: price.usd_per_hour for name, price in found.items() if price is not None}


def _others(load: Workload, traffic: Traffic, seed: int, longest: int | None) -> tuple[Traffic, ...]:
    """Other seeds of the workload, cut to a stretch; of a trace, stretches of itself."""
    if not is_seeded(load):
        return tuple(stretches(traffic, OTHERS, STRETCH)) if len(traffic.requests) > STRETCH else ()
    seeds = range(seed + 1, seed + 1 + OTHERS)
    found = [traffic_of(list(Door(load.requests(each), longest))) for each in seeds]
    return tuple(replace(each.stretch(0, STRETCH), rate_per_s=each.rate_per_s) for each in found)


def _conditions(space: Space, load: Workload, rate: float | None, seed: int, kinds: Iterable[str]) -> Conditions:
    weights = ", ".join(str(each or space.model.weights) for each in space.weights)
    kv = ", ".join(str(each or space.model.dtype) for each in space.kv)
    return Conditions(
        hardware=" or ".join(each.title for each in space.accelerators),
        load="the highest rate that keeps the SLO" if rate is None else f"{rate:g} requests/s",
        lengths=lengths_of(load),
        precision=f"{weights} weights, {kv} KV cache",
        model=space.model.name,
        parallelism=f"{', '.join(map(str, space.counts))} accelerators a replica",
        engine=", ".join(space.engines),
        estimator=", ".join(sorted(kinds)),
        policy=", ".join(space.policies),
        workload=load.title,
        seeds=(seed,),
        version=__version__,
    )
