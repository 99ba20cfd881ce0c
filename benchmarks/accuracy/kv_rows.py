"""Rows of start-up logs -> deployments: what a row states, and nothing of what its log says about memory."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.deployment.engine import EngineProfile, engine_profile
from servewise.deployment.pool import pool_block_tokens, rank_kv_bytes_per_sequence
from servewise.hardware.accelerator import Accelerator, Quantity
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.modelspec.spec import ModelSpec, WeightPart
from servewise.precision import parse_precision
from servewise.units import GIB

DATA = Path(__file__).parents[1] / "data"
Row = Mapping[str, str]
Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row: predicted and logged figure in ``unit``; ``of_memory`` is their gap as a share of the device."""

    id: str
    what: str
    unit: str
    logged: float
    predicted: float
    of_memory: float
    era: str

    @property
    def error(self) -> float:
        """Predicted over logged, less one."""
        return self.predicted / self.logged - 1


def load_rows() -> dict[str, Row]:
    """The rows of kv_logs.csv by id."""
    with (DATA / "kv_logs.csv").open() as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def load_plan() -> dict[str, dict[str, Any]]:
    """Which rows are used, and how."""
    return tomllib.loads((DATA / "kv_cases.toml").read_text())


def load_evidence() -> list[Row]:
    """The logged figures behind the fitted constants."""
    with (DATA / "kv_constants.csv").open() as file:
        return list(csv.DictReader(file))


def further_row(case: Case) -> Row:
    """A log that is not in the table, in the table's columns."""
    empty = dict.fromkeys(next(iter(load_rows().values())), "")
    stated = {name: str(value) for name, value in case["stated"].items()}
    tensor = str(case.get("tensor", 1))
    named = {"model": case["model"], "gpu": case["accelerator"], "n_gpu": tensor, "tp": tensor, "kv_dtype": "bf16"}
    return {**empty, **named, **stated, "kv_tokens": str(case["kv_tokens"]), "source": case["source"]}


def outcome(name: str, row: Row, case: Case, profile: EngineProfile | None = None) -> Outcome:
    """The row's prediction beside its log."""
    deployment = deployment_of(with_stated(row, case), case)
    unit, era = case.get("target", "tokens"), engine_profile(case["engine"]).name
    capacity = kv_capacity(without_context_demand(deployment), profile)
    pool = capacity.kv_budget_bytes if isinstance(capacity, KvCapacity) else 0.0
    what = f"{row['model'].split('/')[-1][:30]}, {row['n_gpu']} x {row['gpu'][:14]}, {case['engine']}"
    if unit == "pool":
        logged, predicted = float(row["kv_avail_gib_per_gpu"]), pool / GIB
    elif unit == "concurrency":
        logged, predicted = logged_concurrency(row), pool / one_sequence(deployment)
    else:
        logged = float(row["kv_tokens"])
        predicted = capacity.kv_tokens if isinstance(capacity, KvCapacity) else 0.0
    gap = pool * (1 - logged / predicted) if predicted else 0.0
    return Outcome(name, what, unit, logged, predicted, gap / deployment.accelerator.memory_bytes, era)


def with_stated(row: Row, case: Case) -> Row:
    """The row with settings that its source states and the table does not."""
    return {**row, **{name: str(value) for name, value in case.get("stated", {}).items()}}


def fits_as_logged(row: Row, case: Case) -> bool:
    """Whether the prediction says, as the log does, that there is memory for a cache, or none."""
    return kv_capacity(without_context_demand(deployment_of(row, case))).fits == (
        float(row["kv_avail_gib_per_gpu"]) > 0
    )


def logged_concurrency(row: Row) -> float:
    """Sequences of the longest length that the logged pool holds; a hybrid's tokens are that times the length."""
    if row["max_concurrency_x"]:
        return float(row["max_concurrency_x"])
    if row["kv_tokens"]:
        return float(row["kv_tokens"]) / float(row["max_model_len"])
    return float(row["kv_avail_gib_per_gpu"]) / float(row["kv_needed_gib"])


def one_sequence(deployment: Deployment) -> float:
    """Bytes of one sequence of the longest length on one accelerator."""
    profile = engine_profile(deployment.engine)
    longest = deployment.limits.max_context_tokens or deployment.model.max_context_tokens or 1
    block = pool_block_tokens(deployment, profile)
    return rank_kv_bytes_per_sequence(deployment, profile, longest, block, 1.0)


def without_context_demand(deployment: Deployment) -> Deployment:
    """The same deployment, its pool asked for even where one longest sequence does not fit, as refusals print it.

    Engines that profile a whole prompt keep the longest context as their largest step.
    """
    profile, limits = engine_profile(deployment.engine), deployment.limits
    context, batched = limits.max_context_tokens, limits.max_batched_tokens
    if profile.whole_prompt and context and not batched and context <= profile.chunk_above_context:
        batched = max(context, profile.batch_defaults(deployment.accelerator).max_batched_tokens)
    return replace(deployment, limits=replace(limits, max_context_tokens=None, max_batched_tokens=batched))


def deployment_of(row: Row, case: Case) -> Deployment:
    """The deployment that the row states."""
    split = Parallelism(
        tensor=case.get("tensor", int(row["tp"])),
        pipeline=int(row["pp"] or 1),
        data=case.get("data", 1),
        expert=case.get("expert", False),
        decode_context=case.get("decode_context", 1),
    )
    return Deployment(
        model=model_of(case),
        accelerator=accelerator_of(case),
        kv=parse_precision(case.get("kv") or row["kv_dtype"]),
        activations=parse_precision("bf16"),
        weights=parse_precision(case["weights"]) if "weights" in case and "quantised_parts" not in case else None,
        engine=case["engine"],
        parallelism=split,
        limits=limits_of(row),
    )


def model_of(case: Case) -> ModelSpec:
    """The model, in the case's formats where the row's checkpoint is quantised by others."""
    name = case["model"]
    model = load_model(str(DATA / name) if name.endswith(".json") else name)
    if "quantised_parts" not in case:
        return model
    parts = frozenset(WeightPart(each) for each in case["quantised_parts"])
    return replace(model, weights=parse_precision(case["weights"]), quantised_parts=parts)


def accelerator_of(case: Case) -> Accelerator:
    """The catalogue's device, or a nameless one of the memory that the row states."""
    if "accelerator" in case:
        return load_accelerator(case["accelerator"])
    memory = Quantity(case["memory_gib"] * GIB, "B", "the row", "", "measured")
    none = Quantity(1.0, "", "not needed", "", "assumed")
    return Accelerator(name="card", title="card", memory=memory, bandwidth=none, peaks={"bf16": none})


def limits_of(row: Row) -> Limits:
    """The settings that the row states."""

    def whole(name: str) -> int | None:
        return int(row[name]) if row[name] else None

    share = row["gpu_memory_utilization"]
    return Limits(
        memory_utilization=float(share) if share else None,
        max_batched_tokens=whole("max_num_batched_tokens"),
        max_sequences=whole("max_num_seqs"),
        max_context_tokens=whole("max_model_len"),
        cuda_graphs=row["enforce_eager"] != "1",
    )


def refitted(engine: str, evidence: Iterable[Row]) -> EngineProfile:
    """The engine's profile with its fitted constants taken anew from ``evidence``."""
    profile = engine_profile(engine)
    logged: dict[str, list[float]] = {}
    for each in evidence:
        logged.setdefault(each["constant"], []).append(float(each["gib"]) * GIB)
    middle = {name: median(values) for name, values in logged.items()}
    growth = middle["growth"]
    changed: dict[str, float] = {}
    if profile.runtime_bytes:
        changed["runtime_bytes"] = middle["in_use"] if profile.runtime_bytes > 0.2e9 else growth
    if profile.collective_bytes:
        changed["collective_bytes"] = middle["pcie"] - growth
        changed["switched_collective_bytes"] = middle["switched"] - growth
    if profile.unified_runtime_bytes:
        changed["unified_runtime_bytes"] = middle["unified"]
    if profile.graph_bytes_each:
        changed["graph_bytes_each"] = middle["graph"]
        changed["split_graph_bytes_each"] = middle["split_graph"]
    return replace(profile, **changed)  # type: ignore[arg-type]
