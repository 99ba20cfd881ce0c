"""How long does one step take, of what is it made, and from which batch on is it compute-bound?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options, conditions_of, deploy
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import whole, wholes
from servewise.ask.precisions import precision_rows
from servewise.caveats import Caveat, unique
from servewise.deployment.capacity import KvCapacity, kv_capacity, max_sequences
from servewise.deployment.deployment import Deployment
from servewise.errors import UnknownName
from servewise.plan.clock import clock_for
from servewise.steptime.estimator import Estimator
from servewise.steptime.ideal import ideal_roofline
from servewise.steptime.ranges import range_caveats
from servewise.steptime.ridge import ridge_batch, ridge_batch_without_kv
from servewise.steptime.shape import StepShape, decode_shape, prefill_shape

Phase = Literal["decode", "prefill"]
PHASES = ("decode", "prefill")
DEFAULT_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DEFAULT_CONTEXT_TOKENS = 2048
MOST_BATCH = 2**20
MOST_CONTEXT_TOKENS = 10**8


def steptime(
    model: ModelLike,
    accelerator: AcceleratorLike | None = None,
    *,
    phase: Phase = "decode",
    batch: int | Iterable[int] = DEFAULT_BATCHES,
    context: int = DEFAULT_CONTEXT_TOKENS,
    estimator: str | None = None,
    **options: Unpack[Options],
) -> Answer:
    """The time of a ``phase`` step at each ``batch``, every sequence at ``context`` tokens (the new one included).

    ``decode`` makes one token a sequence, ``prefill`` takes whole prompts of ``context`` tokens. ``tokens_per_s`` are
    of one replica: tokens made (decode) or prompt tokens taken in (prefill). ``estimator``: calibrated, ideal, or a
    file; None: ideal for the ideal engine, else calibrated. ``precisions`` compare the decode step with fewer bits. The
    ridge is where compute time reaches memory time in decode: ``ridge_batch`` by the ideal roofline,
    ``ridge_batch_estimated`` by the estimator; None: never.
    """
    deployment = deploy(model, accelerator, **options)
    batches = tuple(whole(each, "batch", most=MOST_BATCH) for each in wholes(batch, "batch"))
    whole(context, "context", most=MOST_CONTEXT_TOKENS)
    if phase not in PHASES:
        raise UnknownName("phase", str(phase), PHASES, where="phase", hint=f"one of {', '.join(PHASES)}")
    clock = clock_for(deployment, estimator)
    ideal = ideal_roofline(deployment)
    return Answer(
        command="steptime",
        conditions=conditions_of(
            deployment,
            load=f"{phase}, batch {', '.join(map(str, batches))}",
            lengths=f"{context} tokens a sequence",
            estimator=clock.name,
        ),
        result={
            "rows": [_row(clock, phase, each, context) for each in batches],
            "ridge_batch": ridge_batch(ideal, context),
            "ridge_batch_without_kv": ridge_batch_without_kv(ideal),
            "ridge_batch_estimated": ridge_batch(clock, context),
            "phase": phase,
            "estimator": clock.name,
        }
        | _precisions(deployment, phase, batches[len(batches) // 2], context, estimator),
        caveats=unique(
            clock.caveats
            + _one_in_flight(deployment)
            + _beyond_range(clock, phase, batches, context)
            + _beyond_memory(deployment, batches, context)
        ),
    )


def _precisions(
    deployment: Deployment, phase: Phase, batch: int, context: int, estimator: str | None
) -> dict[str, Any]:
    """Fewer bits compared, for decode alone: that is where bytes are time."""
    return {"precisions": precision_rows(deployment, batch, context, estimator)} if phase == "decode" else {}


def shape_of(phase: Phase, batch: int, context: int, window_tokens: int | None) -> StepShape:
    """``batch`` sequences at ``context`` tokens in that phase."""
    make = decode_shape if phase == "decode" else prefill_shape
    return make(batch, context, window_tokens)


def _row(clock: Estimator, phase: Phase, batch: int, context: int) -> dict[str, Any]:
    step = clock.step(shape_of(phase, batch, context, clock.window_tokens))
    return {
        "batch": batch,
        "context_tokens": context,
        "compute_s": step.compute_s,
        "memory_s": step.memory_s,
        "overhead_s": step.overhead_s,
        "communication_s": step.communication_s,
        "step_s": step.step_s,
        "floor_s": step.floor_s,
        "tokens_per_s": batch * (context if phase == "prefill" else 1) / step.step_s,
        "bound": step.bound,
    }


def _beyond_range(clock: Estimator, phase: Phase, batches: tuple[int, ...], context: int) -> tuple[Caveat, ...]:
    """A caveat for each quantity that leaves the fitted range, at the smallest and the largest batch."""
    ends = (shape_of(phase, each, context, clock.window_tokens) for each in (min(batches), max(batches)))
    return tuple(caveat for shape in ends for caveat in range_caveats(clock, shape))


def _one_in_flight(deployment: Deployment) -> tuple[Caveat, ...]:
    stages = deployment.parallelism.pipeline
    if stages == 1:
        return ()
    message = f"tokens/s are those of one batch on its way through {stages} stages; a server has up to {stages}"
    return (Caveat("one-batch-in-flight", message, "servewise simulate runs them all"),)


def _beyond_memory(deployment: Deployment, batches: tuple[int, ...], context: int) -> tuple[Caveat, ...]:
    """A caveat where the largest batch would not fit beside the weights."""
    capacity = kv_capacity(deployment)
    most = max_sequences(deployment, capacity, context) if isinstance(capacity, KvCapacity) else 0
    over = [each for each in batches if each > most]
    if not over:
        return ()
    message = f"batch {', '.join(map(str, over))} does not fit: at most {most} sequences of {context} tokens do"
    return (Caveat("beyond-memory", message, "more or larger accelerators, fewer KV bytes, or a shorter context"),)
