"""Does it fit, and how many tokens and sequences does it leave room for?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options, conditions_of, deploy
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import whole
from servewise.caveats import Caveat, unique
from servewise.deployment.capacity import DoesNotFit, KvCapacity, kv_capacity, max_sequences, shortage_bytes
from servewise.deployment.deployment import Deployment
from servewise.deployment.startup_log.read import read_startup_log
from servewise.deployment.startup_log.reconcile import Reconciliation, reconcile
from servewise.modelspec.kv import kv_bytes, kv_bytes_per_token
from servewise.modelspec.weights import weight_bytes
from servewise.units import format_bytes

DEFAULT_CONTEXT_TOKENS = 2048
MOST_CONTEXT_TOKENS = 10**9
LADDER = (512, 2048, 8192, 32_768, 131_072)


def size(
    model: ModelLike,
    accelerator: AcceleratorLike | None = None,
    *,
    context: int = DEFAULT_CONTEXT_TOKENS,
    log: str | Path | None = None,
    **options: Unpack[Options],
) -> Answer:
    """What ``model`` takes of ``accelerator``'s memory, and the sequences of ``context`` tokens that fit in the rest.

    Bytes are of one accelerator, tokens and sequences of one replica (tp x pp accelerators); ``model_weight_bytes``
    and ``model_kv_bytes_per_token`` are of the whole model. ``fits`` False is an answer: ``short_by_bytes`` says by
    how much. ``log``: an engine's start-up log; what was left unstated is taken from it (engine and version, memory,
    limits, split), and its figures are set against the prediction, term by term (``reconciliation``).
    """
    deployment = deploy(model, accelerator, **options)
    whole(context, "context", most=MOST_CONTEXT_TOKENS)
    compared = None if log is None else reconcile(deployment, read_startup_log(log))
    deployment = compared.deployment if compared else deployment
    capacity = kv_capacity(deployment)
    return Answer(
        command="size",
        conditions=conditions_of(deployment, load="at rest", lengths=f"{context} tokens a sequence"),
        result=_result(deployment, capacity, context) | _reconciled(compared),
        caveats=unique(
            (compared or capacity).caveats
            + _context_caveats(deployment, capacity, context)
            + what_if_caveats(deployment)
        ),
    )


def what_if_caveats(deployment: Deployment) -> tuple[Caveat, ...]:
    """What a reader must know where numbers were overridden or the engine is an ideal one."""
    found = []
    if " KV heads" in deployment.model.name:
        message = "hypothetical KV heads: only the cache is changed, the weights are the real model's"
        found.append(Caveat("hypothetical-kv-heads", message, "leave --kv-heads out for the model as it is"))
    if deployment.engine == "ideal":
        message = "engine ideal: all memory beside the weights is taken as KV cache; real engines leave less"
        found.append(Caveat("ideal-engine", message, "name your engine with --engine"))
    return tuple(found)


def _context_caveats(deployment: Deployment, capacity: KvCapacity | DoesNotFit, context: int) -> tuple[Caveat, ...]:
    """That the pool does not hold one sequence of ``context``, or that the model was not made for so long a one."""
    found = []
    short = shortage_bytes(deployment, capacity, context) if isinstance(capacity, KvCapacity) else 0.0
    if short:
        message = f"one sequence of {context:,} tokens is {format_bytes(short)} more than the pool of each accelerator"
        found.append(Caveat("context-does-not-fit", message, "a shorter --context, an fp8 KV cache, more accelerators"))
    longest = deployment.limits.max_context_tokens or deployment.model.max_context_tokens
    if longest and context > longest and deployment.engine != "ideal":
        message = f"{context:,} tokens are more than the {longest:,} of the model or of --max-context: engines refuse"
        found.append(Caveat("beyond-context", message, "a shorter --context, or a model with scaled positions"))
    return (*found, *_windowed_refused(deployment, capacity))


def _windowed_refused(deployment: Deployment, capacity: KvCapacity | DoesNotFit) -> tuple[Caveat, ...]:
    """That an engine refuses the context of a model with windows; of other models the capacity itself says so."""
    model, longest = deployment.model, deployment.model.max_context_tokens
    if deployment.engine == "ideal" or deployment.limits.max_context_tokens or not model.window_tokens or not longest:
        return ()
    if isinstance(capacity, DoesNotFit) or not shortage_bytes(deployment, capacity, longest):
        return ()
    message = f"the model's own context of {longest:,} tokens is more than the pool holds: an engine refuses it"
    return (Caveat("context-exceeds-pool", message, "limit it with --max-context"),)


def _result(deployment: Deployment, capacity: KvCapacity | DoesNotFit, context: int) -> dict[str, Any]:
    model, kv = deployment.model, deployment.kv
    held = _held(deployment, capacity, context) if isinstance(capacity, KvCapacity) else dict(_NOTHING)
    return {
        "weight_bytes": capacity.weight_bytes,
        "kv_bytes_per_token": capacity.kv_bytes_per_token,
        **held,
        "breakdown": [{"name": term.name, "bytes": term.bytes, "note": term.note} for term in capacity.breakdown],
        "memory_bytes": deployment.accelerator.memory_bytes,
        "accelerators": deployment.parallelism.accelerators,
        "replicas": deployment.parallelism.data,
        "context_tokens": context,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "model_weight_bytes": weight_bytes(model, deployment.weights),
        "model_kv_bytes_per_token": kv_bytes_per_token(model, kv),
        "model_kv_bytes_per_sequence": kv_bytes(model, context, kv),
        "short_by_bytes": capacity.short_by_bytes
        if isinstance(capacity, DoesNotFit)
        else shortage_bytes(deployment, capacity, context),
    }


def _reconciled(compared: Reconciliation | None) -> dict[str, Any]:
    if compared is None:
        return {}
    rows = [
        {
            "term": row.term,
            "predicted_bytes": row.predicted_bytes,
            "logged_bytes": row.logged_bytes,
            "difference_bytes": row.difference_bytes,
            "note": row.note,
        }
        for row in compared.rows
    ]
    return {
        "reconciliation": rows,
        "logged_kv_tokens": compared.logged_kv_tokens,
        "kv_ratio": compared.kv_ratio,
        "verdict": compared.verdict,
    }


_NOTHING: dict[str, Any] = {"kv_budget_bytes": 0.0, "kv_tokens": 0, "max_sequences": 0, "fits": False, "sequences": []}


def _held(deployment: Deployment, capacity: KvCapacity, context: int) -> dict[str, Any]:
    at_context = max_sequences(deployment, capacity, context)
    return {
        "kv_budget_bytes": capacity.kv_budget_bytes,
        "kv_tokens": capacity.kv_tokens,
        "max_sequences": at_context,
        "fits": at_context > 0,
        "sequences": [
            {"context_tokens": tokens, "max_sequences": max_sequences(deployment, capacity, tokens)}
            for tokens in _contexts(deployment, context)
        ],
        "block_tokens": capacity.block_tokens,
        "blocks": capacity.blocks,
    }


def _contexts(deployment: Deployment, context: int) -> list[int]:
    longest = deployment.limits.max_context_tokens or deployment.model.max_context_tokens
    steps = {tokens for tokens in LADDER if tokens <= (longest or LADDER[-1])}
    return sorted(steps | {context} | ({longest} if longest else set()))
