"""Caveats of a capacity, each with what would mend it."""

from __future__ import annotations

import math

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.units import format_bytes


def shortage_caveats(
    deployment: Deployment, doubt: str, short_by_bytes: float, pool_bytes: float, bytes_per_token: float
) -> tuple[Caveat, ...]:
    """What would make it fit: fewer context tokens where some fit at all, smaller weights, more accelerators."""
    message = f"{format_bytes(short_by_bytes)} short on each accelerator"
    cures = (*_fewer_tokens(deployment, pool_bytes, bytes_per_token), *_smaller(deployment), _more(deployment))
    return (Caveat("does-not-fit", message, "; or ".join(cures)), *_doubtful(doubt))


def _fewer_tokens(deployment: Deployment, pool_bytes: float, bytes_per_token: float) -> tuple[str, ...]:
    tokens = math.floor(pool_bytes / bytes_per_token) if pool_bytes > 0 and bytes_per_token else 0
    if not deployment.limits.max_context_tokens or tokens < 1:
        return ()
    return (f"a context of at most about {tokens:,} tokens",)


def _smaller(deployment: Deployment) -> tuple[str, ...]:
    weights = ("fp8 weights",) if deployment.stored_weights.bits > 8 else ()
    kv = ("an fp8 KV cache",) if deployment.kv.bits > 8 and deployment.limits.max_context_tokens else ()
    return (*weights, *kv)


def _more(deployment: Deployment) -> str:
    return f"more than {deployment.parallelism.accelerators} x {deployment.accelerator.title}"


def capacity_caveats(
    deployment: Deployment, doubt: str, pool_bytes: float, bytes_per_token: float
) -> tuple[Caveat, ...]:
    """What a reader must know of a pool that exists."""
    return (
        *_context_refused(deployment, pool_bytes, bytes_per_token),
        *_heads_uneven(deployment),
        *_uncounted(deployment),
        *_doubtful(doubt),
    )


def _context_refused(deployment: Deployment, pool_bytes: float, bytes_per_token: float) -> tuple[Caveat, ...]:
    longest, tokens = deployment.model.max_context_tokens, math.floor(pool_bytes / (bytes_per_token or 1))
    windowed = deployment.model.window_tokens is not None
    if deployment.engine == "ideal" or deployment.limits.max_context_tokens or windowed or not longest:
        return ()
    if longest <= tokens:
        return ()
    message = f"the model's own context of {longest:,} tokens is more than the pool's {tokens:,}: an engine refuses it"
    return (Caveat("context-exceeds-pool", message, f"limit the context to at most {tokens:,} tokens"),)


def _heads_uneven(deployment: Deployment) -> tuple[Caveat, ...]:
    tensor = deployment.parallelism.tensor
    odd = sorted({each.heads for _, each in deployment.model.attentions() if each.heads % tensor})
    if not odd:
        return ()
    heads = ", ".join(map(str, odd))
    return (
        Caveat("heads-not-divisible", f"{heads} query heads over {tensor} ranks", "most engines refuse: change tp"),
    )


def _uncounted(deployment: Deployment) -> tuple[Caveat, ...]:
    if not deployment.model.uncounted or deployment.engine == "ideal":
        return ()
    parts = ", ".join(deployment.model.uncounted)
    message = f"not counted among the weights: {parts}"
    return (Caveat("parts-not-counted", message, "where the engine loads them too, lower --memory by their size"),)


def _doubtful(doubt: str) -> tuple[Caveat, ...]:
    return (
        (Caveat("reserves-assumed", f"assumed: {doubt}", "compare with the engine's start-up log (--log)"),)
        if doubt
        else ()
    )
