"""A start-up log against the prediction, term by term."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from servewise.caveats import Caveat
from servewise.deployment.capacity import DoesNotFit, KvCapacity, kv_capacity
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.deployment.startup_log.facts import StartupFacts
from servewise.units import format_bytes

T = TypeVar("T")
CLOSE = 0.05
"""A KV figure within 5% of the log's counts as agreement; the accuracy benchmark's median bar."""

DERIVED = "compare concurrency: the printed tokens are concurrency x the longest request"
DIFFERENT = "check KV precision, split and model: with several workers the pool is one's, the tokens the smallest's"
DISCOUNT = {"kv cache", "outside the share"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRow:
    """One term on one accelerator [bytes]; ``logged_bytes`` and ``difference_bytes`` None where the log is silent.

    The difference is predicted less logged.
    """

    term: str
    predicted_bytes: float
    logged_bytes: float | None
    note: str = ""

    @property
    def difference_bytes(self) -> float | None:
        """Predicted less logged [bytes]."""
        return None if self.logged_bytes is None else self.predicted_bytes - self.logged_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Prediction and log side by side. ``kv_ratio`` is predicted over logged tokens; ``verdict`` one sentence."""

    deployment: Deployment
    facts: StartupFacts
    rows: tuple[TermRow, ...]
    predicted_kv_tokens: int
    logged_kv_tokens: int | None
    kv_ratio: float | None
    verdict: str
    caveats: tuple[Caveat, ...] = ()


def with_logged_settings(deployment: Deployment, facts: StartupFacts) -> Deployment:
    """``deployment`` with what was left unstated filled from the log: engine era, memory, limits, split.

    What the user stated stays. A single accelerator is taken as not stated.
    """
    limits = deployment.limits
    filled = Limits(
        memory_utilization=_stated(limits.memory_utilization, facts.memory_utilization),
        max_batched_tokens=_stated(limits.max_batched_tokens, facts.max_batched_tokens),
        max_sequences=_stated(limits.max_sequences, facts.max_sequences),
        max_context_tokens=_stated(limits.max_context_tokens, facts.max_context_tokens),
        block_tokens=_stated(limits.block_tokens, facts.block_tokens),
        cuda_graphs=limits.cuda_graphs,
    )
    memory = facts.total_bytes if "memory" not in deployment.accelerator.overridden else None
    return replace(
        deployment,
        engine=_engine(deployment.engine, facts),
        accelerator=deployment.accelerator.with_overrides(memory=memory) if memory else deployment.accelerator,
        parallelism=_split(deployment.parallelism, facts),
        limits=filled,
    )


def _stated(given: T | None, logged: T | None) -> T | None:
    return logged if given is None else given


def _engine(engine: str, facts: StartupFacts) -> str:
    """The engine that wrote the log, with its version, unless the user named an era."""
    if engine.startswith(facts.engine) and engine != facts.engine:
        return engine
    return f"{facts.engine}-{facts.version}" if facts.version and facts.engine != "llamacpp" else facts.engine


def _split(split: Parallelism, facts: StartupFacts) -> Parallelism:
    if split != Parallelism():
        return split
    return Parallelism(tensor=facts.tensor or 1, pipeline=facts.pipeline or 1, decode_context=facts.decode_context or 1)


def reconcile(deployment: Deployment, facts: StartupFacts) -> Reconciliation:
    """The prediction for ``deployment``, completed from the log, against the log's own figures.

    Raises InputError where the log's settings contradict each other (a DCP that does not divide TP and the like).
    """
    completed = with_logged_settings(deployment, facts)
    capacity = kv_capacity(completed)
    rows = _rows(capacity, facts)
    predicted = _pool_tokens(capacity)
    logged = facts.pool_tokens
    return Reconciliation(
        deployment=completed,
        facts=facts,
        rows=rows,
        predicted_kv_tokens=predicted,
        logged_kv_tokens=logged,
        kv_ratio=predicted / logged if logged else None,
        verdict=_verdict(predicted, logged, rows, facts, capacity),
        caveats=(*capacity.caveats, *_caveats(completed, capacity, facts)),
    )


def _pool_tokens(capacity: KvCapacity | DoesNotFit) -> int:
    """Tokens of the pool, also of one that is too small for the longest sequence."""
    if isinstance(capacity, KvCapacity):
        return capacity.kv_tokens
    pool = next(term.bytes for term in capacity.breakdown if term.name == "kv cache")
    return math.floor(pool / capacity.kv_bytes_per_token) if capacity.kv_bytes_per_token else 0


def _rows(capacity: KvCapacity | DoesNotFit, facts: StartupFacts) -> tuple[TermRow, ...]:
    """Terms in the order of the breakdown; runtime and collectives together, as engines print them."""
    predicted = {term.name: term.bytes for term in capacity.breakdown}
    outside = predicted.pop("runtime", 0.0) + predicted.pop("collectives", 0.0)
    rest = predicted.pop("outside the share")
    logged = _logged(facts, predicted.get("weights", 0.0))
    terms = {**predicted, "non-torch": outside, "outside the share": rest}
    return tuple(
        TermRow(term=name, predicted_bytes=size, logged_bytes=logged.get(name), note=_note(name, facts))
        for name, size in terms.items()
    )


def _logged(facts: StartupFacts, predicted_weights: float) -> Mapping[str, float | None]:
    """The log's figure for each term; where only weights and non-torch together are printed, weights as loaded."""
    non_torch = facts.non_torch_bytes
    if non_torch is None and facts.consumed_bytes is not None:
        non_torch = facts.consumed_bytes - (facts.weight_bytes or predicted_weights)
    if non_torch is None and facts.available_before_load_bytes is not None and facts.total_bytes is not None:
        non_torch = facts.total_bytes - facts.available_before_load_bytes
    return {
        "weights": facts.weight_bytes,
        "activations": facts.activation_bytes,
        "graphs": facts.estimated_graph_bytes if facts.estimated_graph_bytes is not None else facts.graph_bytes,
        "non-torch": non_torch,
        "kv cache": facts.kv_bytes,
    }


def _note(name: str, facts: StartupFacts) -> str:
    if name == "non-torch":
        return "runtime and collectives"
    if name == "graphs" and facts.estimated_graph_bytes is not None:
        return "as the engine estimated before it captured them"
    return ""


def _verdict(
    predicted: int,
    logged: int | None,
    rows: tuple[TermRow, ...],
    facts: StartupFacts,
    capacity: KvCapacity | DoesNotFit,
) -> str:
    both = "both refuse the longest sequence; " if facts.refusal and isinstance(capacity, DoesNotFit) else ""
    if not logged:
        return f"{both}predicted {predicted:,} KV tokens; the log prints none" + _explained(rows)
    gap = predicted / logged - 1
    head = f"{both}predicted {predicted:,} KV tokens, the log says {logged:,} ({gap:+.1%})"
    return f"{head}: they agree" if abs(gap) <= CLOSE else head + _explained(rows)


def _explained(rows: tuple[TermRow, ...]) -> str:
    """Which term differs most, where the log gives it."""
    known = [(row, row.difference_bytes) for row in rows if row.term not in DISCOUNT]
    differing = [(row, size) for row, size in known if size is not None]
    if not differing:
        return "; the log gives no term by which to explain it"
    row, size = max(differing, key=lambda pair: abs(pair[1]))
    way = "more" if size > 0 else "less"
    return f"; the largest difference is in {row.term}: {format_bytes(abs(size))} {way} predicted than logged"


def _caveats(deployment: Deployment, capacity: KvCapacity | DoesNotFit, facts: StartupFacts) -> tuple[Caveat, ...]:
    """What makes the two figures hard to compare: another size of a token, or a printed figure that is derived."""
    if not (facts.kv_bytes and facts.pool_tokens and capacity.kv_bytes_per_token):
        return ()
    logged = facts.kv_bytes / facts.pool_tokens
    if abs(logged / capacity.kv_bytes_per_token - 1) <= 2 * CLOSE:
        return ()
    hybrid = deployment.model.window_tokens is not None or any(
        each.state_values for _, each in deployment.model.attentions()
    )
    message = (
        f"the log's pool over its tokens is {logged:,.0f} B, the model's token {capacity.kv_bytes_per_token:,.0f} B"
    )
    return (Caveat("token-size-differs", message, DERIVED if hybrid else DIFFERENT),)
