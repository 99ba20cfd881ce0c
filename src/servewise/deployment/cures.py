"""Caveats of a capacity, each with what would mend it."""

from __future__ import annotations

import math
from dataclasses import replace

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import EngineProfile
from servewise.deployment.reserves import activation_bytes, largest_step, memory_utilization
from servewise.deployment.shard import pipeline_stages
from servewise.units import format_bytes

MOST_UTILIZATION = 0.97  # above it graphs and fragments that no profile counts find no room


def shortage_caveats(
    deployment: Deployment, profile: EngineProfile, short_by_bytes: float, pool_bytes: float, bytes_per_token: float
) -> tuple[Caveat, ...]:
    """What would make it fit, each alone where it is a number: fewer tokens or sequences, a larger share; or less."""
    message = f"{format_bytes(short_by_bytes)} short on each accelerator"
    cures = (
        *_fewer_tokens(deployment, pool_bytes, bytes_per_token),
        *_fewer_sequences(deployment, profile, short_by_bytes),
        *_larger_share(deployment, profile, short_by_bytes),
        *_smaller(deployment),
        _more(deployment),
    )
    return (Caveat("does-not-fit", message, "; or ".join(cures)), *_doubtful(profile.doubt))


def _fewer_sequences(deployment: Deployment, profile: EngineProfile, short_by_bytes: float) -> tuple[str, ...]:
    """Sampling's part of the activations is by the most sequences that are told to the engine."""
    row = deployment.model.vocab_size * profile.logit_bytes
    now = largest_step(deployment, profile).sequences
    fewer = now - math.ceil(short_by_bytes / row) if row else 0
    if fewer < 1 or profile.logit_rows_are_tokens or "activations" not in profile.inside_share + profile.before_share:
        return ()
    *_, last = pipeline_stages(deployment.model.layer_count, deployment.parallelism.pipeline)
    told = replace(deployment, limits=replace(deployment.limits, max_sequences=fewer))
    freed = activation_bytes(deployment, profile, last) - activation_bytes(told, profile, last)
    return (f"at most {fewer:,} sequences at once instead of {now:,}",) if freed >= short_by_bytes else ()


def _larger_share(deployment: Deployment, profile: EngineProfile, short_by_bytes: float) -> tuple[str, ...]:
    share = memory_utilization(deployment, profile)
    needed = share + short_by_bytes / deployment.accelerator.memory_bytes
    if share == 1 or needed > MOST_UTILIZATION:
        return ()
    return (f"a memory utilisation of {math.ceil(needed * 100) / 100:.2f} instead of {share:.3g}",)


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
