"""Deployments that make no sense are refused with one line, before any arithmetic."""

from __future__ import annotations

import math

from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.deployment.expert_load import Counted
from servewise.errors import InputError
from servewise.modelspec.spec import FeedForward

MOST_ACCELERATORS = 100_000
MOST_COPIES = 64  # of an expert
MOST_TOKENS = 1_000_000_000_000


def check(deployment: Deployment) -> None:
    """Refuse (InputError) a split or limits that no engine could take."""
    _check_parallelism(deployment.parallelism, deployment.model.layer_count)
    _check_limits(deployment.limits)
    check_experts(deployment)
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


def check_experts(deployment: Deployment) -> None:
    """Refuse (InputError) expert loads that are not this model's, and copies that ranks cannot hold as many each of."""
    routed = [group.feed_forward for group in deployment.model.layers if group.feed_forward.experts]
    for part in routed if deployment.parallelism.expert_ranks > 1 else ():
        _check_copies(deployment.parallelism, part)
        if isinstance(deployment.expert_load, Counted):
            _check_counts(deployment.expert_load, part, deployment.model.layer_count)


def _check_copies(split: Parallelism, part: FeedForward) -> None:
    """As vLLM and SGLang assert it: all ranks hold as many."""
    copies, ranks = split.redundant_experts, split.expert_ranks
    if copies is None:
        return
    if copies < 0 or (part.experts + copies) % ranks:
        fitting = -part.experts % ranks
        what = f"{part.experts} experts and {copies} copies do not divide into {ranks} ranks"
        raise InputError(what, where="redundant-experts", hint=f"{fitting}, {fitting + ranks}, ...")
    if copies > MOST_COPIES * part.experts:
        raise InputError(f"at most {MOST_COPIES} for each of {part.experts} experts", where="redundant-experts")


def _check_counts(counted: Counted, part: FeedForward, layers: int) -> None:
    """A token chooses distinct experts: none has more than one in ``experts_per_token`` of a layer's choices."""
    if counted.experts != part.experts:
        what = f"{counted.source} counts {counted.experts} experts, the model has {part.experts}"
        raise InputError(what, where="expert-load", hint="logical experts, copies summed")
    if len(counted.tokens) > layers:
        what = f"{counted.source} counts {len(counted.tokens)} layers, the model has {layers}"
        raise InputError(what, where="expert-load", hint="a row for each layer, steps summed")
    for at, row in enumerate(counted.tokens):
        if max(row) * part.experts_per_token > sum(row) * (1 + 1e-6):
            what = f"{counted.source}: an expert of row {at} has {max(row) / sum(row):.1%} of the choices"
            hint = f"a token chooses {part.experts_per_token} distinct ones: at most 1 in {part.experts_per_token}"
            raise InputError(what, where="expert-load", hint=hint)


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
