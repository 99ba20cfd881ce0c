"""A plan's candidate as JSON."""

from __future__ import annotations

from typing import Any

from servewise.plan.candidates import Candidate, describe
from servewise.plan.presets import cuts_prompts, tokens_of


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
        "max_batched_tokens": tokens_of(candidate.policy),
        "chunked_prefill": cuts_prompts(candidate.policy),
        "prefix_cache": getattr(candidate.policy, "prefix_cache", False),
        "memory_utilization": it.limits.memory_utilization,
    }
