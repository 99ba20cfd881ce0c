"""The schedulers of real engines by name, with the engines' own settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from servewise.ask.settings import settings_of
from servewise.batching.policies import LlamaCpp, Policy, Sglang, TrtLlm, Vllm
from servewise.deployment.capacity import DoesNotFit, kv_capacity
from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import BatchDefaults, engine_profile

LEAST_RUNNING, MOST_RUNNING = 2048, 4096


class Preset(NamedTuple):
    """``make`` builds it; ``names`` is what the engine calls sequences at once and tokens a step."""

    make: Callable[..., Policy]
    kind: type
    sequences: str
    tokens: str


PRESETS: Mapping[str, Preset] = {
    "vllm": Preset(Vllm, Vllm, "max_num_seqs", "max_num_batched_tokens"),
    "sglang": Preset(Sglang, Sglang, "max_running_requests", "chunked_prefill_size"),
    "trtllm": Preset(TrtLlm, TrtLlm, "max_batch_size", "max_num_tokens"),
    "llamacpp": Preset(LlamaCpp, LlamaCpp, "n_parallel", "n_batch"),
}


def preset_named(name: str, deployment: Deployment, settings: Mapping[str, object]) -> Policy:
    """The preset ``name`` with ``settings``; where none is given, what the engine does on that accelerator.

    --max-sequences and --max-batched-tokens are the defaults of what the engine calls them.
    """
    preset = PRESETS[name]
    engine = deployment.engine if engine_profile(deployment.engine).family == name else name
    usual = engine_profile(engine).batch_defaults(deployment.accelerator)
    given = settings_of(preset.kind, settings)
    return preset.make(**(_limits(preset, deployment, usual, given) | given))


def running_requests_of(deployment: Deployment) -> int:
    """SGLang's ``max_running_requests`` where none is given: pool tokens / context x 512, from 2,048 to 4,096.

    Source: sglang 0.5.6, ``model_runner.py`` ``init_memory_pool``.
    """
    capacity = kv_capacity(deployment)
    context = deployment.limits.max_context_tokens or deployment.model.max_context_tokens
    if isinstance(capacity, DoesNotFit) or not context:
        return LEAST_RUNNING
    return max(LEAST_RUNNING, min(MOST_RUNNING, int(capacity.kv_tokens / context * 512)))


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


def _sequences(preset: Preset, deployment: Deployment, usual: BatchDefaults) -> int:
    return running_requests_of(deployment) if preset.kind is Sglang else usual.max_sequences
