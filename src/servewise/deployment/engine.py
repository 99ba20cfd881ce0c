"""Engines as data: what each one, in each era, takes of a device's memory before the KV cache."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from servewise.deployment.deployment import Parallelism
from servewise.errors import UnknownName
from servewise.hardware.accelerator import Accelerator
from servewise.units import GIB, MIB

Term = Literal["weights", "activations", "graphs", "runtime", "collectives"]
Windows = Literal["full", "windowed", "paged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDefaults:
    """The batch limits that an engine takes when none are given, by the size of the device [GiB]."""

    max_batched_tokens: int
    max_sequences: int
    memory_from_gib: float = 0.0
    not_named: str = ""

    def apply_to(self, accelerator: Accelerator) -> bool:
        """Whether this row is meant for that device."""
        named = self.not_named and self.not_named in accelerator.name.lower()
        return accelerator.memory_bytes >= self.memory_from_gib * GIB and not named


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """SGLang's default share: what must stay outside of it [MiB] by chunk, graph batch and accelerators."""

    constant_mib: float
    mib_per_token: float
    mib_per_graph_sequence: float
    mib_per_graph_sequence_and_replica: float
    mib_per_wide_graph_sequence_and_replica: float  # graphs of over 300 sequences
    mib_per_accelerator: float
    floor_mib: float
    floor_from_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveTier:
    """SGLang's default of mid-2025: what stays outside of the share [GiB] on devices below a size [GiB]."""

    gib: float
    gib_per_accelerator: float = 0.0
    gib_with_data_parallel: float = 4.0
    below_gib: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """One engine in one era; the fields are explained at the head of ``engines.toml``.

    ``windows`` says what a sliding layer holds: ``full`` (every token), ``windowed`` (the window), ``paged`` (the
    window and the tokens of one step, in blocks, layers padded to groups of equal size, as vLLM's hybrid manager).
    ``whole_prompt``: the profile run takes a prompt of the full context unless that is above ``chunk_above_context``.
    ``value_bytes``: bytes of an activation value where the engine computes in a format of its own.
    ``embedding_on_host``: an untied input table stays in host memory. ``keeps_reduced``: torch.distributed holds on to
    every all-reduced tensor of the profile run (TORCH_NCCL_AVOID_RECORD_STREAMS was set from vLLM 0.2.6 on).
    ``mxfp4_padding``: the multiples to which MXFP4 experts' hidden and inner widths grow when loaded.
    ``index_entries_per_context``: keys of the sparse indexer that a prefill buffer holds, per token of the longest
    context. ``doubt`` says what of the profile is assumed and was not checked against logs.
    """

    name: str
    family: str
    title: str
    source: str
    since: str = "0"
    inside_share: tuple[Term, ...] = ()
    before_share: tuple[Term, ...] = ()
    memory_utilization: float | None = None
    utilization_by_tensor: tuple[tuple[int, float], ...] = ()
    reserve: Reserve | None = None
    reserve_tiers: tuple[ReserveTier, ...] = ()
    block_tokens: int = 1
    defaults: tuple[BatchDefaults, ...] = (BatchDefaults(max_batched_tokens=2048, max_sequences=256),)
    whole_prompt: bool = False
    chunk_above_context: int = 0
    vocab_padding: int = 1
    whole_checkpoint: bool = False
    rotary_table: bool = False
    hidden_copies: float = 0.0
    logit_bytes: float = 0.0
    value_bytes: float | None = None
    embedding_on_host: bool = False
    logit_rows_are_tokens: bool = False
    runtime_bytes: float = 0.0
    collective_bytes: float = 0.0
    switched_collective_bytes: float = 0.0
    unified_runtime_bytes: float | None = None
    graph_bytes_each: float = 0.0
    split_graph_bytes_each: float = 0.0
    index_entries_per_context: int = 0
    keeps_reduced: bool = False
    mxfp4_padding: tuple[int, ...] = ()
    windows: Windows = "windowed"
    reserves_context: bool = False
    doubt: str = ""

    def batch_defaults(self, accelerator: Accelerator) -> BatchDefaults:
        """The limits for that device: the first row that is meant for it."""
        return next((each for each in self.defaults if each.apply_to(accelerator)), self.defaults[-1])

    def utilization(self, accelerator: Accelerator, split: Parallelism, batched: int, sequences: int) -> float:
        """The share of memory taken when none is given, for steps of that many tokens and sequences."""
        if self.reserve is not None:
            return _sglang_share(self.reserve, accelerator, split, batched, sequences)
        if self.reserve_tiers:
            return _tier_share(self.reserve_tiers, accelerator, split)
        by_tensor = (share for least, share in self.utilization_by_tensor if split.tensor >= least)
        return next(by_tensor, 1.0 if self.memory_utilization is None else self.memory_utilization)


def _sglang_share(reserve: Reserve, accelerator: Accelerator, split: Parallelism, batched: int, graphs: int) -> float:
    kept = reserve.constant_mib + max(batched, 2048) * reserve.mib_per_token
    kept += graphs * reserve.mib_per_graph_sequence + split.accelerators * reserve.mib_per_accelerator
    if split.data > 1:
        wide = reserve.mib_per_wide_graph_sequence_and_replica if graphs > 300 else 0.0
        kept += graphs * split.data * (reserve.mib_per_graph_sequence_and_replica + wide)
    if accelerator.memory_bytes > reserve.floor_from_gib * GIB:
        kept = max(kept, reserve.floor_mib)
    total = accelerator.memory_bytes / MIB
    return max(0.0, round((total - kept) / total, 3))


def _tier_share(tiers: tuple[ReserveTier, ...], accelerator: Accelerator, split: Parallelism) -> float:
    total = accelerator.memory_bytes / GIB
    tier = next((each for each in tiers if total < each.below_gib), tiers[-1])
    kept = tier.gib + split.accelerators * tier.gib_per_accelerator
    kept += tier.gib_with_data_parallel if split.data > 1 else 0.0
    return max(0.0, round((total - kept) / total, 3))


@cache
def engine_profiles() -> Mapping[str, EngineProfile]:
    """Every profile that ships with the package, by name."""
    text = files("servewise.deployment").joinpath("engines.toml").read_text(encoding="utf-8")
    return {name: _profile(name, table) for name, table in tomllib.loads(text).items()}


def _profile(name: str, table: Mapping[str, Any]) -> EngineProfile:
    known = {each.name for each in fields(EngineProfile)}
    assert set(table) <= known, f"engines.toml [{name}] has unknown keys {set(table) - known}"
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    if "defaults" in given:
        given["defaults"] = tuple(BatchDefaults(**row) for row in given["defaults"])
    if "reserve" in given:
        given["reserve"] = Reserve(**given["reserve"])
    if "reserve_tiers" in given:
        given["reserve_tiers"] = tuple(ReserveTier(**row) for row in given["reserve_tiers"])
    return EngineProfile(name=name, **given)


def engine_profile(engine: str) -> EngineProfile:
    """The profile of ``engine``: a family (its newest era), an era's name, or a family with a version.

    Raises UnknownName with the nearest names.

    >>> engine_profile("vllm-0.10.2").name, engine_profile("vllm").name, engine_profile("sglang 0.4.6").name
    ('vllm-0.9', 'vllm-0.21', 'sglang-0.1')
    """
    name = engine.strip().lower().replace("tensorrt-llm", "trtllm").replace("llama.cpp", "llamacpp")
    profiles = engine_profiles()
    if name in profiles:
        return profiles[name]
    family, _, version = re.sub(r"[\s:=@_-]+v?", "-", name).partition("-")
    eras = [each for each in profiles.values() if each.family == family]
    if not eras or (version and not re.fullmatch(r"\d+(\.\d+)*([.+]?[a-z]\w*)*", version)):
        families = dict.fromkeys(each.family for each in profiles.values())
        raise UnknownName("engine", engine, [*families, *profiles], hint=f"one of {', '.join(families)}")
    fitting = [each for each in eras if not version or version_key(each.since) <= version_key(version)]
    return max(fitting or eras[:1], key=lambda each: version_key(each.since))


def version_key(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparison.

    >>> version_key("0.11.0rc2") > version_key("0.9")
    True
    """
    leading = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in leading.group().split(".")) if leading else ()
