"""Which deployment keeps the SLO at the least cost, why the others lose, and what would move the winner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from servewise.answer import Answer
from servewise.ask.deploying import DEFAULT_ENGINE
from servewise.ask.expert_loads import ExpertLoadLike
from servewise.ask.launching import fetched_as, targets_named
from servewise.ask.names import AcceleratorLike, ModelLike, PrecisionLike, model_named, with_kv_heads
from servewise.ask.plan_asked import Asked
from servewise.ask.plan_offer import Offer, open_load
from servewise.ask.plan_sought import Sought, rate_named, slo_named
from servewise.ask.plan_space import Varied
from servewise.ask.serving import WINDOW_S, WorkloadLike
from servewise.executing.executor import Executor, executor_named
from servewise.metrics.slo import Slo
from servewise.plan.candidates import DEFAULT_COUNTS
from servewise.plan.planner import Progress, find_plan
from servewise.plan.screening import Tell

TOP = 20


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
    ep: bool | Iterable[bool] = False,
    expert_load: ExpertLoadLike | None = None,
    redundant_experts: int | None = None,
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
    ``pp`` pipeline stages), ``ep`` (experts spread over a replica's tensor ranks or not; ``expert_load`` and
    ``redundant_experts`` as in ``Options``), ``weights``, ``kv``, ``engine``, ``policy``, and of the engine's settings
    ``slots`` (max_num_seqs), ``max_batched_tokens`` (max_num_batched_tokens), ``chunked`` (prefill), ``prefix_cache``
    and ``memory_utilization``. Each is one replica; its highest rate is that of the workload, scaled in time, at which
    the SLO still holds (TTFT counts from the arrival, queue included). ``rate`` [requests/s]: rank by the cost of as
    many replicas as carry it, on ``max_accelerators`` at most; None: by the cost of an output token at the highest
    rate. ``policy`` may be an engine's own scheduler (vllm, sglang, trtllm, llamacpp): it is weighed on that engine,
    with the engine's defaults but for ``slots`` and ``max_batched_tokens``.

    The ``top`` of them are ranked, None: all; ``not_ranked`` names the others, with the best that each could be and who
    of the ranked beats it. Candidates that cannot be among them by physical bounds are not
    simulated; ``pruning`` counts them by reason. ``prune`` False simulates all, for the same answer. ``progress``
    hears of candidates done and all, ``tell`` of how many are pruned, simulated and left. ``prices``: a TOML file or
    dollars per accelerator-hour by name, over the shipped quotes. That nothing keeps the SLO is an answer:
    ``recommendation`` None, with ``closest``. ``launch`` starts the recommendation: for the plan's engine, or for
    those that ``emit`` names (vllm, sglang, trtllm, llamacpp, kubernetes). ``executor`` and ``keep`` are as in
    ``simulate``.
    """
    targets = targets_named(emit)
    spec = with_kv_heads(model_named(model), kv_heads)
    sought = Sought(
        slo=slo_named(slo),
        rate_per_s=rate_named(rate),
        max_accelerators=max_accelerators,
        top=top,
        prune=prune,
        prices=prices,
        estimator=estimator,
    )
    varied = Varied(
        accelerators=accelerators,
        counts=counts,
        pp=pp,
        ep=ep,
        expert_load=expert_load,
        redundant_experts=redundant_experts,
        weights=weights,
        kv=kv,
        engine=engine,
        policy=policy,
        slots=slots,
        max_batched_tokens=max_batched_tokens,
        window=window,
        chunked=chunked,
        prefix_cache=prefix_cache,
        memory_utilization=memory_utilization,
        max_context=max_context,
    )
    where = executor_named(executor, processes, keep)
    load, space = open_load(workload, requests), varied.space(spec)
    offer = Offer(load=load, seed=seed, longest=space.longest_tokens)
    asked = Asked(space=space, sought=sought, offer=offer)
    planned = find_plan(asked.question, where, progress, tell)
    return asked.answer(planned, asked.launches(planned, fetched_as(model, spec.name), targets))
