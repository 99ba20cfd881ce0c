"""The schedulers of real engines by name, with the engines' own settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from servewise.ask.settings import settings_of
from servewise.batching.policies import Policy
from servewise.batching.policies.vllm import Vllm
from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import BatchDefaults, engine_profile

Defaults = Callable[[Deployment, BatchDefaults], dict[str, Any]]


def _vllm(deployment: Deployment, usual: BatchDefaults) -> dict[str, Any]:
    sequences = deployment.limits.max_sequences or usual.max_sequences
    batched = deployment.limits.max_batched_tokens or max(usual.max_batched_tokens, sequences)
    return {"max_num_seqs": sequences, "max_num_batched_tokens": batched}


PRESETS: Mapping[str, tuple[Callable[..., Policy], type, Defaults]] = {"vllm": (Vllm, Vllm, _vllm)}


def preset_named(name: str, deployment: Deployment, settings: Mapping[str, object]) -> Policy:
    """The preset ``name`` with ``settings``; where none is given, what the engine does on that accelerator.

    --max-sequences and --max-batched-tokens are the defaults of what the engine calls them.
    """
    make, kind, defaults = PRESETS[name]
    engine = deployment.engine if deployment.engine.startswith(name) else name
    usual = engine_profile(engine).batch_defaults(deployment.accelerator)
    return make(**(defaults(deployment, usual) | settings_of(kind, settings)))
