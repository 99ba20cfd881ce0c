"""Deployments that make no sense are refused with one line, before any arithmetic."""

from __future__ import annotations

import math

from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.errors import InputError

MOST_ACCELERATORS = 100_000
MOST_TOKENS = 1_000_000_000_000


def check(deployment: Deployment) -> None:
    """Refuse (InputError) a split or limits that no engine could take."""
    _check_parallelism(deployment.parallelism, deployment.model.layer_count)
    _check_limits(deployment.limits)
    memory = deployment.accelerator.memory_bytes
    if not 0 < memory < math.inf:
        raise InputError(f"memory must be a positive number of bytes, not {memory!r}", where="accelerator")


def _check_parallelism(split: Parallelism, layers: int) -> None:
    named = {"tp": split.tensor, "pp": split.pipeline, "dp": split.data, "dcp": split.decode_context}
    for name, value in named.items():
        check_whole(name, value, MOST_ACCELERATORS)
    if split.pipeline > layers:
        raise InputError(f"{split.pipeline} pipeline stages for {layers} layers", where="pp", hint="give fewer stages")
    if split.tensor % split.decode_context:
        raise InputError(
            f"dcp {split.decode_context} does not divide tp {split.tensor}", where="dcp", hint="give a divisor of tp"
        )


def _check_limits(limits: Limits) -> None:
    share = limits.memory_utilization
    if share is not None and not 0 < share <= 1:
        raise InputError(f"must be above 0 and at most 1, not {share!r}", where="memory-utilization", hint="e.g. 0.9")
    named = {
        "max-batched-tokens": limits.max_batched_tokens,
        "max-sequences": limits.max_sequences,
        "context": limits.max_context_tokens,
        "block-tokens": limits.block_tokens,
    }
    for name, value in named.items():
        if value is not None:
            check_whole(name, value)


def check_whole(name: str, value: int, most: int = MOST_TOKENS) -> None:
    """Refuse (InputError) anything but a whole number from 1 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InputError(f"must be a whole number from 1 to {most:,}, not {value!r}", where=name)
