"""A plan's candidate as JSON."""

from __future__ import annotations

from typing import Any

from servewise.plan.candidates import Candidate, describe


def deployment_of(candidate: Candidate) -> dict[str, Any]:
    """The deployment as JSON."""
    it = candidate.deployment
    return {
        "title": candidate.title,
        "accelerator": it.accelerator.name,
        "accelerators": candidate.accelerators,
        "parallelism": str(it.parallelism),
        "weights": str(it.stored_weights),
        "kv": str(it.kv),
        "engine": it.engine,
        "policy": describe(candidate.policy),
        "slots": candidate.policy.slots,
        "max_batched_tokens": it.limits.max_batched_tokens,
        "chunked_prefill": getattr(candidate.policy, "chunked_prefill", False),
        "prefix_cache": getattr(candidate.policy, "prefix_cache", False),
        "memory_utilization": it.limits.memory_utilization,
    }
