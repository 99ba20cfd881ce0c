"""Each server's names mean the same quantities; what it does not say is NaN, not 0."""

from __future__ import annotations

import math

import pytest

from servewise.measure.scrape.exposition import samples
from servewise.measure.scrape.meanings import QUANTITIES, WANTED, dialect_of, quantities

VLLM = b"""
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting_by_reason{engine="0"} 99.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:num_preemptions_total{engine="0",model_name="m"} 5.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.7e9
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 40.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 100.0
vllm:generation_tokens_total{engine="0",model_name="m"} 64.0
"""
VLLM_V0 = b"vllm:num_requests_running 1\nvllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_hits_total 7\n"
SGLANG = b"""
sglang:num_running_reqs{model_name="m"} 5
sglang:num_queue_reqs{model_name="m"} 6
sglang:token_usage{model_name="m"} 0.5
sglang:prompt_tokens_total{model_name="m"} 200
sglang:cached_tokens_total{model_name="m",cache_source="device"} 30
sglang:cached_tokens_total{model_name="m",cache_source="host"} 20
"""
LLAMACPP = b"""
llamacpp:prompt_tokens_total 12
llamacpp:prompt_tokens_cached_total 88
llamacpp:tokens_predicted_total 34
llamacpp:requests_processing 2
llamacpp:requests_deferred 1
"""
LLAMACPP_OLD = b"llamacpp:prompt_tokens_total 12\nllamacpp:requests_processing 2\nllamacpp:kv_cache_usage_ratio 0.1\n"
TGI = b"tgi_batch_current_size 4\ntgi_queue_size 7\ntgi_request_generated_tokens_sum 8123\n"


@pytest.mark.parametrize(
    ("page", "engine", "told"),
    [
        (
            VLLM,
            "vllm",
            {
                "running": 7,
                "waiting": 2,
                "kv_use": 0.75,
                "preemptions": 5,
                "prefix_queries_tokens": 100,
                "prefix_hits_tokens": 40,
                "prompt_tokens": 100,
                "output_tokens": 64,
            },
        ),
        (VLLM_V0, "vllm", {"running": 1, "kv_use": 0.5, "prefix_hits_tokens": 7}),
        (
            SGLANG,
            "sglang",
            {
                "running": 5,
                "waiting": 6,
                "kv_use": 0.5,
                "prompt_tokens": 200,
                "prefix_queries_tokens": 200,
                "prefix_hits_tokens": 50,
            },
        ),
        (
            LLAMACPP,
            "llamacpp",
            {
                "running": 2,
                "waiting": 1,
                "prompt_tokens": 100,
                "output_tokens": 34,
                "prefix_queries_tokens": 100,
                "prefix_hits_tokens": 88,
            },
        ),
        (LLAMACPP_OLD, "llamacpp", {"running": 2, "kv_use": 0.1, "prompt_tokens": 12}),
        (TGI, "tgi", {"running": 4, "waiting": 7, "output_tokens": 8123}),
    ],
)
def test_every_dialect_gives_the_same_quantities(page: bytes, engine: str, told: dict[str, float]) -> None:
    """Counts are summed over a server's workers, KV use is that of the fullest, the rest is not known."""
    found = samples(page, WANTED)
    dialect = dialect_of(found)

    assert dialect is not None
    assert dialect.engine == engine
    values = quantities(found, dialect)
    assert {name: value for name, value in values.items() if not math.isnan(value)} == told
    assert set(values) == set(QUANTITIES)


def test_a_page_of_another_program_is_of_no_dialect() -> None:
    """Metrics of a proxy or of Python itself are not taken for a server's."""
    assert dialect_of(samples(b"python_gc_collections_total 3\nvllm:generation_tokens_total 9\n", WANTED)) is None
