"""The deployments that a plan weighs: accelerators, how many, how they are split, formats, policies, settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.deployment.engine import engine_profile
from servewise.deployment.expert_load import USUAL, ExpertLoad
from servewise.deployment.formats import engine_formats
from servewise.deployment.validate import check_experts
from servewise.errors import InputError, UnknownName
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec
from servewise.plan.presets import PRESETS, engine_of, preset_of, tokens_of
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
        share = it.limits.memory_utilization
        taken = "" if share is None else f"{share:.4g} of the memory"
        return ", ".join(part for part in (head, split, formats, it.engine, taken, describe(self.policy)) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What may vary; the candidates are its product. ``pipelines`` are tried where they divide a count.

    ``weights`` and ``kv`` None: as the checkpoint stores and the engine computes. ``slots``, ``batched_tokens`` and
    ``memory_utilization`` None: the engine's own limits. ``chunked_prefill`` and ``prefix_cache`` are of continuous
    batching: both ways are weighed where both are named, as for ``expert``: experts whole on the tensor ranks of a
    replica, as popular as ``expert_load`` has it, with ``redundant_experts`` copies placed by EPLB.
    """

    model: ModelSpec
    accelerators: tuple[Accelerator, ...]
    counts: tuple[int, ...] = DEFAULT_COUNTS
    pipelines: tuple[int, ...] = (1,)
    expert: tuple[bool, ...] = (False,)
    expert_load: ExpertLoad = USUAL
    redundant_experts: int | None = None
    weights: tuple[Precision | None, ...] = (None,)
    kv: tuple[Precision | None, ...] = (None,)
    engines: tuple[str, ...] = ("vllm",)
    policies: tuple[str, ...] = ("continuous",)
    slots: tuple[int | None, ...] = (None,)
    batched_tokens: tuple[int | None, ...] = (None,)
    memory_utilization: tuple[float | None, ...] = (None,)
    chunked_prefill: tuple[bool, ...] = (True,)
    prefix_cache: tuple[bool, ...] = (False,)
    limits: Limits = field(default_factory=Limits)
    window_s: float = 0.05

    @property
    def longest_tokens(self) -> int | None:
        """The longest sequence that its servers take, None: any."""
        return self.limits.max_context_tokens or self.model.max_context_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """``candidates`` in a fixed order, and the combinations of settings that engines refuse, by why."""

    candidates: tuple[Candidate, ...]
    refused: Mapping[str, int]


def candidates(space: Space) -> tuple[Candidate, ...]:
    """Every candidate of ``space``; see ``listed``."""
    return listed(space).candidates


def listed(space: Space) -> Listed:
    """Every candidate of ``space``, and what was left out of it.

    Raises InputError where there are none, or more than ``MOST_CANDIDATES``.
    """
    found: dict[tuple[str, str], Candidate] = {}
    refused: Counter[str] = Counter()
    hint = ""
    for each in _all(space):
        if isinstance(each, InputError):
            refused[each.what] += 1
            hint = hint or each.hint
        else:
            found.setdefault((each.deployment.accelerator.name, each.title), each)
        if len(found) > MOST_CANDIDATES:
            what = f"there are more than {MOST_CANDIDATES:,} candidates"
            raise InputError(what, where="plan", hint="vary less")
    if not found and refused:
        usual = "every running sequence decodes one token a step"
        raise InputError(next(iter(refused)), where="plan", hint=hint or usual)
    if not found:
        raise InputError("there is no candidate to weigh", where="plan", hint="name accelerators, counts and splits")
    return Listed(candidates=tuple(found.values()), refused=refused)


class _Made(NamedTuple):
    """What a replica is made of; ``share`` of the memory."""

    accelerator: Accelerator
    split: Parallelism
    weights: Precision | None
    kv: Precision | None
    engine: str
    share: float | None


class _Set(NamedTuple):
    """How it is set; None: as the engine is by itself."""

    slots: int | None
    batched: int | None
    chunked: bool
    caches: bool


def _all(space: Space) -> Iterator[Candidate | InputError]:
    formats = list(product(space.weights, space.kv, space.engines))
    settings = list(product(space.slots, space.batched_tokens, space.chunked_prefill, space.prefix_cache))
    for accelerator, split, (weights, kv, engine), name, each, share in product(
        space.accelerators, list(_splits(space)), formats, space.policies, settings, space.memory_utilization
    ):
        if not _runs(name, engine, space.engines):
            continue
        try:
            found = _candidate(space, _Made(accelerator, split, weights, kv, engine, share), name, _Set(*each))
            check_experts(found.deployment)
        except UnknownName:
            raise
        except InputError as error:
            yield error
            continue
        yield found


def _runs(name: str, engine: str, engines: Sequence[str]) -> bool:
    """Whether a policy is weighed on that engine: an engine's own not on others, where its own is among ``engines``."""
    if name not in PRESETS or engine_of(name, engine) == engine:
        return True
    return not any(engine_of(name, each) == each for each in engines)


def _candidate(space: Space, made: _Made, name: str, settings: _Set) -> Candidate:
    if name in PRESETS:
        made = made._replace(engine=engine_of(name, made.engine))
        deployment = _deployment(space, made, settings.slots, settings.batched)
        return Candidate(deployment=deployment, policy=preset_of(name, deployment, {}))
    policy = _policy(space, made, name, settings)
    return Candidate(deployment=_deployment(space, made, policy.slots, tokens_of(policy)), policy=policy)


def _splits(space: Space) -> Iterator[Parallelism]:
    """Each count over each number of stages; experts are whole on ranks only where there are several."""
    for count, pipeline, expert in product(space.counts, space.pipelines, space.expert):
        tensor, rest = divmod(count, pipeline)
        copies = space.redundant_experts if expert and tensor > 1 else None
        if not rest:
            yield Parallelism(tensor=tensor, pipeline=pipeline, expert=expert and tensor > 1, redundant_experts=copies)


def _deployment(space: Space, made: _Made, slots: int | None, batched: int | None) -> Deployment:
    formats = engine_formats(space.model, made.accelerator, weights=made.weights, kv=made.kv)
    share = space.limits.memory_utilization if made.share is None else made.share
    return Deployment(
        model=space.model,
        accelerator=made.accelerator,
        weights=formats.weights,
        kv=formats.kv,
        activations=formats.activations,
        engine=made.engine,
        parallelism=made.split,
        expert_load=space.expert_load,
        limits=replace(space.limits, memory_utilization=share, max_batched_tokens=batched, max_sequences=slots),
    )


def _policy(space: Space, made: _Made, name: str, settings: _Set) -> Policy:
    if name == "static":
        return Static(settings.slots or 8)
    if name == "dynamic":
        return Dynamic(settings.slots or 8, space.window_s)
    usual = engine_profile(made.engine).batch_defaults(made.accelerator)
    at_once = settings.slots or usual.max_sequences
    return Continuous(
        max_sequences=at_once,
        max_batched_tokens=settings.batched or max(usual.max_batched_tokens, at_once),
        chunked_prefill=settings.chunked,
        prefix_cache=settings.caches,
    )


def describe(policy: Policy) -> str:
    """The policy shortly."""
    if policy.name in PRESETS:
        tokens = tokens_of(policy)
        step = "whole prompts" if tokens is None else f"{tokens} tokens"
        return f"{policy.name} scheduler {policy.slots} slots {step}"
    if not isinstance(policy, Continuous):
        return f"{policy.name} {policy.slots} slots"
    parts = [f"continuous {policy.max_sequences} slots {policy.max_batched_tokens} tokens"]
    parts += ["whole prompts"] * (not policy.chunked_prefill) + ["prefix cache"] * policy.prefix_cache
    return ", ".join(parts)
