"""The answer to "does it fit": how many KV tokens are left, or how many bytes are short."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from servewise.caveats import Caveat
from servewise.deployment.cures import capacity_caveats, shortage_caveats
from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import EngineProfile, Term, engine_profile
from servewise.deployment.pool import pool_block_tokens, rank_kv_bytes_per_sequence, rank_kv_bytes_per_token
from servewise.deployment.reserves import (
    activation_bytes,
    collective_bytes,
    graph_bytes,
    largest_step,
    memory_utilization,
    runtime_bytes,
)
from servewise.deployment.shard import Stage, pipeline_stages, stage_weight_bytes
from servewise.deployment.validate import check, check_whole
from servewise.units import format_bytes

NOTES = {
    "weights": "as loaded on one accelerator",
    "activations": "peak of the largest step",
    "graphs": "captured CUDA graphs",
    "runtime": "CUDA context and libraries",
    "collectives": "NCCL and all-reduce buffers",
}


@dataclass(frozen=True, slots=True)
class MemoryTerm:
    """One part of an accelerator's memory: its name, its bytes on one accelerator, and how it was found."""

    name: str
    bytes: float
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCapacity:
    """What is left for the KV cache of one replica.

    ``kv_tokens`` are tokens the pool of one replica holds when all layers count in full; ``kv_bytes_per_token`` are
    the bytes that a token takes on one accelerator; ``kv_budget_bytes`` is the pool on one accelerator;
    ``blocks`` its blocks of ``block_tokens`` tokens. ``breakdown`` sums to the accelerator's memory. With pipeline
    stages all of them are those of the fullest stage.
    """

    kv_budget_bytes: float
    kv_bytes_per_token: float
    kv_tokens: int
    block_tokens: int
    blocks: int
    weight_bytes: float
    breakdown: tuple[MemoryTerm, ...]
    caveats: tuple[Caveat, ...] = ()

    fits = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DoesNotFit:
    """It does not fit: ``short_by_bytes`` more are needed on each accelerator to hold weights and one sequence.

    The sequence is one of ``Limits.max_context_tokens`` where that is given, else one block. ``breakdown`` sums to
    the accelerator's memory, its last term being what is missing, below zero, or left unused.
    """

    short_by_bytes: float
    weight_bytes: float
    kv_bytes_per_token: float
    breakdown: tuple[MemoryTerm, ...]
    caveats: tuple[Caveat, ...] = ()

    fits = False


@dataclass(frozen=True, slots=True)
class StageBudget:
    """One pipeline stage: its terms [bytes], what they leave to the pool [bytes, may be below zero], its KV sizes."""

    terms: Mapping[str, float]
    utilization: float
    pool_bytes: float
    bytes_per_token: float
    sequence_bytes: float
    block_tokens: int

    @property
    def blocks(self) -> int:
        """Whole blocks in the pool; of a model that keeps only states, the sequences that it holds."""
        unit = self.bytes_per_token * self.block_tokens or self.sequence_bytes
        return max(0, math.floor(self.pool_bytes / unit)) if unit else 0

    @property
    def short_by_bytes(self) -> float:
        """Bytes missing for one sequence, 0 where it fits."""
        return max(0.0, self.sequence_bytes - self.pool_bytes)


def kv_capacity(deployment: Deployment, profile: EngineProfile | None = None) -> KvCapacity | DoesNotFit:
    """What ``deployment`` leaves for the KV cache on each accelerator, as its engine would.

    pool = share x (memory - terms before the share) - terms inside the share, by stage; the engine's profile says
    which terms stand where (``engines.toml``). The stage that holds the fewest tokens decides for all.
    ``profile`` takes the place of the shipped one where a user has measured an engine's reserves. Raises
    InputError for a split or limits that make no sense, UnknownName for an unknown engine.
    """
    check(deployment)
    profile = profile or engine_profile(deployment.engine)
    budgets = stage_budgets(deployment, profile)
    short = max(budgets, key=lambda each: each.short_by_bytes)
    if short.short_by_bytes > 0:
        return _does_not_fit(deployment, profile, short)
    return _capacity(deployment, profile, min(budgets, key=lambda each: each.blocks))


def max_sequences(deployment: Deployment, capacity: KvCapacity, context_tokens: int) -> int:
    """How many sequences of ``context_tokens`` tokens the pool holds at once (windows, states, blocks respected).

    The engine's own limit on sequences is not applied. Raises InputError for a context below one token.
    """
    return math.floor(capacity.kv_budget_bytes / _sequence_bytes(deployment, capacity, context_tokens))


def shortage_bytes(deployment: Deployment, capacity: KvCapacity, context_tokens: int) -> float:
    """Bytes that the pool lacks for one sequence of ``context_tokens`` on each accelerator, 0 where it holds one.

    Raises InputError for a context below one token.
    """
    return max(0.0, math.ceil(_sequence_bytes(deployment, capacity, context_tokens) - capacity.kv_budget_bytes))


def _sequence_bytes(deployment: Deployment, capacity: KvCapacity, context_tokens: int) -> float:
    check_whole("context", context_tokens)
    profile = engine_profile(deployment.engine)
    whole = rank_kv_bytes_per_token(deployment, 1.0)
    share = capacity.kv_bytes_per_token / whole if whole else 1.0
    return rank_kv_bytes_per_sequence(deployment, profile, context_tokens, capacity.block_tokens, share)


def stage_budgets(deployment: Deployment, profile: EngineProfile) -> tuple[StageBudget, ...]:
    """The budget of every distinct pipeline stage."""
    stages = dict.fromkeys(pipeline_stages(deployment.model.layer_count, deployment.parallelism.pipeline))
    return tuple(_stage_budget(deployment, profile, stage) for stage in stages)


def _stage_budget(deployment: Deployment, profile: EngineProfile, stage: Stage) -> StageBudget:
    terms: dict[Term, float] = {
        "weights": stage_weight_bytes(deployment, profile, stage),
        "activations": activation_bytes(deployment, profile, stage),
        "graphs": graph_bytes(deployment, profile),
        "runtime": runtime_bytes(deployment, profile),
        "collectives": collective_bytes(deployment, profile),
    }
    names = (*profile.before_share, *profile.inside_share)
    charged: dict[str, float] = {name: float(math.ceil(terms[name])) for name in names}
    before = sum(charged[name] for name in profile.before_share)
    inside = sum(charged[name] for name in profile.inside_share)
    share = memory_utilization(deployment, profile)
    pool = math.floor(share * (_memory(deployment) - before)) - inside
    block = pool_block_tokens(deployment, profile)
    context = deployment.limits.max_context_tokens or block
    sequence = rank_kv_bytes_per_sequence(deployment, profile, context, block, stage.share)
    if profile.reserves_context and deployment.limits.max_context_tokens:
        sequence *= largest_step(deployment, profile).sequences
        pool = min(pool, max(math.ceil(sequence), 0))
    return StageBudget(charged, share, pool, rank_kv_bytes_per_token(deployment, stage.share), sequence, block)


def _memory(deployment: Deployment) -> float:
    return float(math.floor(deployment.accelerator.memory_bytes))


def _capacity(deployment: Deployment, profile: EngineProfile, stage: StageBudget) -> KvCapacity:
    return KvCapacity(
        kv_budget_bytes=stage.pool_bytes,
        kv_bytes_per_token=stage.bytes_per_token,
        kv_tokens=stage.blocks * stage.block_tokens,
        block_tokens=stage.block_tokens,
        blocks=stage.blocks,
        weight_bytes=stage.terms["weights"],
        breakdown=_breakdown(deployment, stage, stage.pool_bytes),
        caveats=capacity_caveats(deployment, profile.doubt, stage.pool_bytes, stage.bytes_per_token),
    )


def _does_not_fit(deployment: Deployment, profile: EngineProfile, stage: StageBudget) -> DoesNotFit:
    return DoesNotFit(
        short_by_bytes=float(math.ceil(stage.short_by_bytes)),
        weight_bytes=stage.terms["weights"],
        kv_bytes_per_token=stage.bytes_per_token,
        breakdown=_breakdown(deployment, stage, max(0.0, stage.pool_bytes)),
        caveats=shortage_caveats(deployment, profile, stage.short_by_bytes, stage.pool_bytes, stage.bytes_per_token),
    )


def _breakdown(deployment: Deployment, stage: StageBudget, pool: float) -> tuple[MemoryTerm, ...]:
    """The memory of one accelerator by term; whole bytes, so that they sum exactly."""
    named = [MemoryTerm(name, size, NOTES[name]) for name, size in stage.terms.items()]
    rest = _memory(deployment) - pool - sum(stage.terms.values())
    note = f"the engine takes {stage.utilization:.3g} of the memory" if rest >= 0 else f"{format_bytes(-rest)} missing"
    return (*named, MemoryTerm("kv cache", pool, "the pool"), MemoryTerm("outside the share", rest, note))
