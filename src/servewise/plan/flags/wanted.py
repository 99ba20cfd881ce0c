"""What a launch must realise: a planned replica, the model by the name that engines fetch it by, and its lengths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.deployment.engine import engine_profile
from servewise.deployment.reserves import memory_utilization
from servewise.plan.candidates import Candidate
from servewise.plan.presets import tokens_of

CONTEXT_STEP = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """``model`` is a hub id or a path; ``longest_tokens`` the longest request of the workload, prompt and answer.

    ``replicas`` of ``candidate`` are to run. ``stated_context_tokens``: the longest context that was asked for.
    """

    candidate: Candidate
    model: str
    longest_tokens: int
    replicas: int = 1
    stated_context_tokens: int | None = None

    @property
    def context_tokens(self) -> int:
        """The longest context to serve: as stated, else the longest request in whole steps of 256 tokens."""
        rounded = math.ceil(max(self.longest_tokens, 1) / CONTEXT_STEP) * CONTEXT_STEP
        most = self.candidate.deployment.model.max_context_tokens
        return self.stated_context_tokens or min(rounded, most or rounded)

    @property
    def batched_tokens(self) -> int | None:
        """New tokens a step at most, None where the policy has no such limit."""
        return tokens_of(self.candidate.policy)

    @property
    def utilization(self) -> float:
        """The share of memory that the plan counted with, of the plan's own engine."""
        deployment = self.candidate.deployment
        return round(memory_utilization(deployment, engine_profile(deployment.engine)), 3)

    @property
    def kv_tokens(self) -> int:
        """Tokens that the plan's KV pool holds on one replica."""
        capacity = kv_capacity(self.candidate.deployment)
        return capacity.kv_tokens if isinstance(capacity, KvCapacity) else 0

    @property
    def family(self) -> str:
        """The engine family that the plan was made for."""
        return engine_profile(self.candidate.deployment.engine).family

    @property
    def half(self) -> str:
        """The 16-bit format that is computed in: bfloat16 or float16."""
        return "float16" if self.candidate.deployment.model.dtype.name == "fp16" else "bfloat16"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLaunch:
    """``argv`` starts the engine with ``env``, after ``files`` were written; ``notes`` say what it cannot express."""

    engine: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The launch as JSON."""
        return {
            "argv": list(self.argv),
            "env": dict(self.env),
            "files": dict(self.files),
            "notes": list(self.notes),
        }
