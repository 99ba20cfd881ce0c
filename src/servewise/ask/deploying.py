"""From a question's options to one Deployment, and to the conditions under which its figures hold."""

from __future__ import annotations

from typing import TypedDict

from servewise.ask.expert_loads import ExpertLoadLike, with_experts
from servewise.ask.names import (
    AcceleratorLike,
    ModelLike,
    PrecisionLike,
    accelerator_named,
    model_named,
    precision_named,
    with_kv_heads,
)
from servewise.ask.numbers import positive, whole
from servewise.conditions import Conditions
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.deployment.engine import engine_profile
from servewise.deployment.formats import engine_formats
from servewise.errors import InputError

DEFAULT_ENGINE = "vllm"
MOST_ACCELERATORS = 65_536


class Options(TypedDict, total=False):
    """How the model is deployed; every question takes these, all optional.

    ``count``: accelerators in all (default: tp x pp). ``tp``, ``pp``: tensor- and pipeline-parallel degrees (default:
    tensor parallel over ``count``); ``ep``: experts spread over all of them, as popular as ``expert_load`` says
    (``even``, ``dirichlet:0.46``, a file of counts), with ``redundant_experts`` copies placed by EPLB; ``dcp``: tensor
    ranks that share out the KV cache's tokens. ``weights``, ``kv``, ``activations``: precisions (default: as engines
    choose).
    ``engine``: ideal, vllm (default), sglang, trtllm, llamacpp, with a version where it matters (vllm-0.10).
    ``memory_utilization``: share of device memory that the engine may take. ``max_batched_tokens``,
    ``max_sequences``, ``max_context``, ``block_tokens``: the engine's limits. ``kv_heads``: as if the model had that
    many key-value heads. ``peak_flops`` [FLOP/s], ``bandwidth`` [bytes/s], ``memory`` [bytes]: your own numbers, over
    the catalogue's or, all three, instead of a catalogue entry.
    """

    count: int | None
    tp: int | None
    pp: int | None
    ep: bool
    expert_load: ExpertLoadLike | None
    redundant_experts: int | None
    dcp: int | None
    weights: PrecisionLike | None
    kv: PrecisionLike | None
    activations: PrecisionLike | None
    engine: str
    memory_utilization: float | None
    max_batched_tokens: int | None
    max_sequences: int | None
    max_context: int | None
    block_tokens: int | None
    kv_heads: int | None
    peak_flops: float | None
    bandwidth: float | None
    memory: float | None


def deploy(
    model: ModelLike,
    accelerator: AcceleratorLike | None,
    *,
    count: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: bool = False,
    expert_load: ExpertLoadLike | None = None,
    redundant_experts: int | None = None,
    dcp: int | None = None,
    weights: PrecisionLike | None = None,
    kv: PrecisionLike | None = None,
    activations: PrecisionLike | None = None,
    engine: str = DEFAULT_ENGINE,
    memory_utilization: float | None = None,
    max_batched_tokens: int | None = None,
    max_sequences: int | None = None,
    max_context: int | None = None,
    block_tokens: int | None = None,
    kv_heads: int | None = None,
    peak_flops: float | None = None,
    bandwidth: float | None = None,
    memory: float | None = None,
) -> Deployment:
    """The deployment that ``Options`` describe. Raises InputError for each setting that cannot be."""
    spec = with_kv_heads(model_named(model), kv_heads)
    chip = accelerator_named(accelerator, peak_flops=peak_flops, bandwidth=bandwidth, memory=memory)
    formats = engine_formats(
        spec,
        chip,
        weights=precision_named(weights, "weights"),
        kv=precision_named(kv, "kv"),
        activations=precision_named(activations, "activations"),
    )
    found = Deployment(
        model=spec,
        accelerator=chip,
        weights=formats.weights,
        kv=formats.kv,
        activations=formats.activations,
        engine=engine_named(engine),
        parallelism=_parallelism(count, tp, pp, ep=ep, dcp=dcp),
        limits=Limits(
            memory_utilization=_utilization(memory_utilization),
            max_batched_tokens=_limit(max_batched_tokens, "max_batched_tokens"),
            max_sequences=_limit(max_sequences, "max_sequences"),
            max_context_tokens=_limit(max_context, "max_context"),
            block_tokens=_limit(block_tokens, "block_tokens"),
        ),
    )
    return with_experts(found, expert_load, redundant_experts)


def conditions_of(deployment: Deployment, *, load: str, lengths: str, estimator: str | None = None) -> Conditions:
    """The conditions of figures about ``deployment`` at that load and those lengths."""
    from servewise.version import __version__

    return Conditions(
        hardware=hardware_of(deployment),
        load=load,
        lengths=lengths,
        precision=precision_of(deployment),
        model=deployment.model.name,
        parallelism=str(deployment.parallelism),
        experts=experts_of(deployment, estimator),
        engine=deployment.engine,
        estimator=estimator,
        version=__version__,
    )


def hardware_of(deployment: Deployment) -> str:
    """The accelerator and how many: ``2 x A100 80GB``, overridden numbers named."""
    accelerator = deployment.accelerator
    own = f" (own {', '.join(sorted(accelerator.overridden))})" if accelerator.overridden else ""
    return f"{deployment.parallelism.accelerators} x {accelerator.title}{own}"


def precision_of(deployment: Deployment) -> str:
    """The three formats in words."""
    return f"{deployment.stored_weights} weights, {deployment.kv} KV cache, {deployment.activations} activations"


def experts_of(deployment: Deployment, estimator: str | None) -> str | None:
    """How popular experts are taken to be; None where it makes no difference."""
    routed = any(group.feed_forward.experts for group in deployment.model.layers)
    if not routed or deployment.parallelism.expert_ranks == 1:
        return None
    if estimator == "ideal":
        return "even (ideal)"
    # A calibration's or a table's name ends with its file's; the load of the server that it was made on lies in it.
    measured = estimator is not None and (estimator.startswith("table (") or estimator.endswith(".toml)"))
    return "as measured" if measured else str(deployment.expert_load)


def engine_named(name: str) -> str:
    """``name`` if it is an engine that is known, with or without its version; UnknownName otherwise."""
    engine_profile(name)
    return name.strip().lower()


def _parallelism(count: int | None, tp: int | None, pp: int | None, *, ep: bool, dcp: int | None) -> Parallelism:
    for name, value in {"count": count, "tp": tp, "pp": pp, "dcp": dcp}.items():
        if value is not None:
            whole(value, name, most=MOST_ACCELERATORS)
    pipeline = pp or 1
    tensor = tp or max(1, (count or 1) // pipeline)
    replica = tensor * pipeline
    total = count or replica
    if total % replica:
        raise InputError(
            f"{total} accelerators do not divide into replicas of {replica}", where="count", hint="tp x pp"
        )
    if tensor % (dcp or 1):
        raise InputError(f"must divide the tensor-parallel degree {tensor}, not {dcp}", where="dcp")
    return Parallelism(tensor=tensor, pipeline=pipeline, data=total // replica, expert=ep, decode_context=dcp or 1)


def _utilization(value: float | None) -> float | None:
    return None if value is None else positive(value, "memory_utilization", most=1.0)


def _limit(value: int | None, where: str) -> int | None:
    return None if value is None else whole(value, where)
