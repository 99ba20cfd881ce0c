"""The schedulers of real engines by name, with the limits that the engine takes on a deployment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from servewise.batching.policies import Continuous, LlamaCpp, Policy, Sglang, TrtLlm, Vllm
from servewise.deployment.capacity import DoesNotFit, kv_capacity
from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import BatchDefaults, engine_profile
from servewise.errors import InputError

LEAST_RUNNING, MOST_RUNNING = 2048, 4096


class Preset(NamedTuple):
    """``make`` builds it; the others are what the engine calls sequences at once, tokens a step and, where its limits
    are those of one of the batches in flight, its pipeline stages."""

    make: Callable[..., Policy]
    kind: type
    sequences: str
    tokens: str
    stages: str = ""


PRESETS: Mapping[str, Preset] = {
    "vllm": Preset(Vllm, Vllm, "max_num_seqs", "max_num_batched_tokens"),
    "sglang": Preset(Sglang, Sglang, "max_running_requests", "chunked_prefill_size"),
    "trtllm": Preset(TrtLlm, TrtLlm, "max_batch_size", "max_num_tokens", "pipeline_parallel_size"),
    "llamacpp": Preset(LlamaCpp, LlamaCpp, "n_parallel", "n_batch"),
}


def preset_of(name: str, deployment: Deployment, given: dict[str, Any]) -> Policy:
    """The preset ``name`` with the settings ``given``; where none is, what the engine does on that accelerator.

    The deployment's own limits are the defaults of what the engine calls them.
    """
    preset = PRESETS[name]
    usual = engine_profile(engine_of(name, deployment.engine)).batch_defaults(deployment.accelerator)
    return preset.make(**(_limits(preset, deployment, usual, given) | _stages(preset, deployment, given) | given))


def engine_of(name: str, engine: str) -> str:
    """Whose scheduler it is: ``engine``, where it is of that family, else the newest of the family."""
    return engine if engine_profile(engine).family == name else name


def running_requests_of(deployment: Deployment) -> int:
    """SGLang's ``max_running_requests`` where none is given: pool tokens / context x 512, from 2,048 to 4,096.

    Source: sglang 0.5.6, ``model_runner.py`` ``init_memory_pool``.
    """
    capacity = kv_capacity(deployment)
    context = deployment.limits.max_context_tokens or deployment.model.max_context_tokens
    if isinstance(capacity, DoesNotFit) or not context:
        return LEAST_RUNNING
    return max(LEAST_RUNNING, min(MOST_RUNNING, int(capacity.kv_tokens / context * 512)))


def tokens_of(policy: Policy) -> int | None:
    """New tokens of a step at most, whatever the engine calls it; None: there is no such limit."""
    if isinstance(policy, Continuous):
        return policy.max_batched_tokens
    preset = PRESETS.get(policy.name)
    found = 0 if preset is None else int(getattr(policy, preset.tokens) or 0)
    return found if found > 0 else None


def cuts_prompts(policy: Policy) -> bool:
    """Whether a prompt may be computed over several steps."""
    match policy:
        case Continuous():
            return policy.chunked_prefill
        case Vllm() | TrtLlm():
            return policy.enable_chunked_prefill
        case Sglang():
            return policy.chunked_prefill_size > 0
        case _:
            return isinstance(policy, LlamaCpp)


def _limits(preset: Preset, deployment: Deployment, usual: BatchDefaults, given: Mapping[str, Any]) -> dict[str, int]:
    """The two limits where they are asked for, or the engine's own for that accelerator where it has no one default.

    The tokens of a step that decodes too are then at least what a step of that many sequences takes.
    """
    without = {each.name for each in fields(preset.kind) if each.default is MISSING}
    limits, found = deployment.limits, dict[str, int]()
    if limits.max_sequences or preset.sequences in without:
        found[preset.sequences] = limits.max_sequences or _sequences(preset, deployment, usual)
    if limits.max_batched_tokens or preset.tokens in without:
        at_once = 1 if preset.kind is Sglang else int(given.get(preset.sequences) or found.get(preset.sequences, 1))
        found[preset.tokens] = limits.max_batched_tokens or max(usual.max_batched_tokens, at_once)
    return found


def _stages(preset: Preset, deployment: Deployment, given: Mapping[str, Any]) -> dict[str, int]:
    """The deployment's stages, for an engine that counts by them; InputError where others are given."""
    stages = deployment.parallelism.pipeline
    if given.get(preset.stages, stages) != stages:
        raise InputError(
            f"{preset.stages} {given[preset.stages]} is not the deployment's {stages}",
            where="set",
            hint=f"leave it out: it follows the split (--pp {given[preset.stages]})",
        )
    return {preset.stages: stages} if preset.stages else {}


def _sequences(preset: Preset, deployment: Deployment, usual: BatchDefaults) -> int:
    return running_requests_of(deployment) if preset.kind is Sglang else usual.max_sequences
