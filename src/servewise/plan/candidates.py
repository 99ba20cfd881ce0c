"""The deployments that a plan weighs: accelerators, how many, how they are split, formats, limits, policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.deployment.engine import engine_profile
from servewise.deployment.formats import engine_formats
from servewise.errors import InputError
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec
from servewise.precision import Precision

MOST_CANDIDATES = 10_000
DEFAULT_COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One replica of a deployment under a policy."""

    deployment: Deployment
    policy: Policy

    @property
    def accelerators(self) -> int:
        """Accelerators of one replica."""
        return self.deployment.parallelism.accelerators

    @property
    def title(self) -> str:
        """E.g. ``2 x NVIDIA H100 SXM, TP2, bf16 weights, bf16 KV, vllm, continuous 256 slots``."""
        it = self.deployment
        split = str(it.parallelism) if self.accelerators > 1 else ""
        head = f"{self.accelerators} x {it.accelerator.title}"
        formats = f"{it.stored_weights} weights, {it.kv} KV"
        return ", ".join(part for part in (head, split, formats, it.engine, describe(self.policy)) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What may vary; the candidates are its product. ``pipelines`` are tried where they divide a count.

    ``weights`` and ``kv`` None: as the checkpoint stores and the engine computes. ``slots`` and ``batched_tokens``
    None: the engine's own limits.
    """

    model: ModelSpec
    accelerators: tuple[Accelerator, ...]
    counts: tuple[int, ...] = DEFAULT_COUNTS
    pipelines: tuple[int, ...] = (1,)
    weights: tuple[Precision | None, ...] = (None,)
    kv: tuple[Precision | None, ...] = (None,)
    engines: tuple[str, ...] = ("vllm",)
    policies: tuple[str, ...] = ("continuous",)
    slots: tuple[int | None, ...] = (None,)
    batched_tokens: tuple[int | None, ...] = (None,)
    limits: Limits = field(default_factory=Limits)
    prefix_cache: bool = False
    window_s: float = 0.05


def candidates(space: Space) -> tuple[Candidate, ...]:
    """Every candidate of ``space``, in a fixed order.

    Raises InputError where there are none, or more than ``MOST_CANDIDATES``.
    """
    found = tuple({(each.deployment.accelerator.name, each.title): each for each in _all(space)}.values())
    if not found:
        raise InputError("there is no candidate to weigh", where="plan", hint="name accelerators, counts and splits")
    if len(found) > MOST_CANDIDATES:
        raise InputError(f"{len(found)} candidates are more than {MOST_CANDIDATES}", where="plan", hint="vary less")
    return found


def _all(space: Space) -> Iterator[Candidate]:
    formats = product(space.weights, space.kv, space.engines)
    for accelerator, split, (weights, kv, engine), name, slots, batched in product(
        space.accelerators,
        list(_splits(space.counts, space.pipelines)),
        list(formats),
        space.policies,
        space.slots,
        space.batched_tokens,
    ):
        policy = _policy(space, accelerator, engine, name, slots, batched)
        deployment = _deployment(space, accelerator, split, weights, kv, engine, policy)
        yield Candidate(deployment=deployment, policy=policy)


def _splits(counts: Iterable[int], pipelines: Sequence[int]) -> Iterator[Parallelism]:
    for count, pipeline in product(counts, pipelines):
        if count % pipeline == 0:
            yield Parallelism(tensor=count // pipeline, pipeline=pipeline)


def _deployment(
    space: Space,
    accelerator: Accelerator,
    split: Parallelism,
    weights: Precision | None,
    kv: Precision | None,
    engine: str,
    policy: Policy,
) -> Deployment:
    formats = engine_formats(space.model, accelerator, weights=weights, kv=kv)
    batched = policy.max_batched_tokens if isinstance(policy, Continuous) else None
    return Deployment(
        model=space.model,
        accelerator=accelerator,
        weights=formats.weights,
        kv=formats.kv,
        activations=formats.activations,
        engine=engine,
        parallelism=split,
        limits=Limits(
            memory_utilization=space.limits.memory_utilization,
            max_batched_tokens=batched,
            max_sequences=policy.slots,
            max_context_tokens=space.limits.max_context_tokens,
            block_tokens=space.limits.block_tokens,
        ),
    )


def _policy(
    space: Space, accelerator: Accelerator, engine: str, name: str, slots: int | None, batched: int | None
) -> Policy:
    if name == "static":
        return Static(slots or 8)
    if name == "dynamic":
        return Dynamic(slots or 8, space.window_s)
    usual = engine_profile(engine).batch_defaults(accelerator)
    at_once = slots or usual.max_sequences
    return Continuous(
        max_sequences=at_once,
        max_batched_tokens=batched or max(usual.max_batched_tokens, at_once),
        prefix_cache=space.prefix_cache,
    )


def describe(policy: Policy) -> str:
    """The policy shortly."""
    if isinstance(policy, Continuous):
        return f"continuous {policy.max_sequences} slots {policy.max_batched_tokens} tokens"
    return f"{policy.name} {policy.slots} slots"
