"""Which metric of which server means what.

Names as the servers write them (read 2026-11): vLLM docs.vllm.ai/en/stable/usage/metrics, and the older names of V0;
SGLang python/sglang/srt/observability and docs/references/production_metrics; llama.cpp tools/server/README.md
(``--metrics``; the cached prompt tokens since 2026-08); TGI huggingface.co/docs/text-generation-inference/reference/
metrics. The package's own engine writes vLLM's names. A counter may come with or without ``_total``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from servewise.measure.scrape.exposition import Sample

# Of each quantity: the metrics whose sum it is, in the order in which they are looked for.
Names = tuple[tuple[str, ...], ...]
GAUGES = ("running", "waiting", "kv_use")
COUNTERS = ("preemptions", "prompt_tokens", "output_tokens", "prefix_queries_tokens", "prefix_hits_tokens")
QUANTITIES = (*GAUGES, *COUNTERS)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of server names what we look for. ``names`` maps a quantity to the sums that can give it."""

    engine: str
    names: Mapping[str, Names]


def _counter(*names: str) -> Names:
    return tuple((each,) for name in names for each in (f"{name}_total", name))


DIALECTS = (
    Dialect(
        "vllm",
        {
            "running": (("vllm:num_requests_running",),),
            "waiting": (("vllm:num_requests_waiting",),),
            "kv_use": (("vllm:kv_cache_usage_perc",), ("vllm:gpu_cache_usage_perc",)),
            "preemptions": _counter("vllm:num_preemptions"),
            "prompt_tokens": _counter("vllm:prompt_tokens"),
            "output_tokens": _counter("vllm:generation_tokens"),
            "prefix_queries_tokens": _counter("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
            "prefix_hits_tokens": _counter("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
        },
    ),
    Dialect(
        "sglang",
        {
            "running": (("sglang:num_running_reqs",),),
            "waiting": (("sglang:num_queue_reqs",),),
            "kv_use": (("sglang:token_usage",),),
            "preemptions": (("sglang:num_retracted_requests_total",), ("sglang:num_retracted_reqs_total",)),
            "prompt_tokens": _counter("sglang:prompt_tokens"),
            "output_tokens": _counter("sglang:generation_tokens"),
            "prefix_queries_tokens": _counter("sglang:prompt_tokens"),
            "prefix_hits_tokens": _counter("sglang:cached_tokens"),
        },
    ),
    Dialect(
        "llamacpp",
        {
            "running": (("llamacpp:requests_processing",),),
            "waiting": (("llamacpp:requests_deferred",),),
            "kv_use": (("llamacpp:kv_cache_usage_ratio",),),
            "prompt_tokens": (
                ("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"),
                ("llamacpp:prompt_tokens_total",),
            ),
            "output_tokens": (("llamacpp:tokens_predicted_total",),),
            "prefix_queries_tokens": (("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"),),
            "prefix_hits_tokens": (("llamacpp:prompt_tokens_cached_total",),),
        },
    ),
    Dialect(
        "tgi",
        {
            "running": (("tgi_batch_current_size",),),
            "waiting": (("tgi_queue_size",),),
            "prompt_tokens": (("tgi_request_input_length_sum",),),
            "output_tokens": (("tgi_request_generated_tokens_sum",),),
        },
    ),
)
WANTED = frozenset(name for dialect in DIALECTS for sums in dialect.names.values() for names in sums for name in names)


def dialect_of(found: Sequence[Sample]) -> Dialect | None:
    """Whose metrics they are; None for a page without any that is known."""
    names = {each.name for each in found}
    for dialect in DIALECTS:
        if any(names.issuperset(each) for each in dialect.names["running"]):
            return dialect
    return None


def quantities(found: Iterable[Sample], dialect: Dialect) -> dict[str, float]:
    """Each of ``QUANTITIES`` in SI units, NaN where the server does not say.

    Over several workers of one server (labels) counts are summed; ``kv_use``, a share, is that of the fullest.
    """
    values: dict[str, list[float]] = {}
    for each in found:
        values.setdefault(each.name, []).append(each.value)
    return {name: _first(values, dialect.names.get(name, ()), fullest=name == "kv_use") for name in QUANTITIES}


def _first(values: Mapping[str, list[float]], sums: Names, *, fullest: bool) -> float:
    for names in sums:
        if all(name in values for name in names):
            return max(values[names[0]]) if fullest else math.fsum(math.fsum(values[name]) for name in names)
    return math.nan
