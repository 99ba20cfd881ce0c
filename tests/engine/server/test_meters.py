"""The page for Prometheus."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

pytest.importorskip("openai")

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.engine.running.fake import FakeModel, config
from tests.engine.server.raw import get, post, send
from tests.engine.server.serving import BLOCK, BLOCKS, MODEL, serving, wait_until

from servewise.batching.policies import Continuous
from servewise.engine.running.engine import Engine
from servewise.engine.server.asked import Served
from servewise.engine.server.meters import Histogram, Meters
from servewise.measure.scrape.exposition import samples
from servewise.measure.scrape.meanings import QUANTITIES, WANTED, dialect_of, quantities
from servewise.records.columns import CANCELLED, COMPLETED

# As vLLM writes them (vllm/v1/metrics/loggers.py, commit 005a810), a counter with _total as its client adds it.
VLLMS = (
    "num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "num_preemptions_total",
    "prompt_tokens_total", "generation_tokens_total", "prefix_cache_queries_total", "prefix_cache_hits_total",
    "request_success_total", "cache_config_info", "time_to_first_token_seconds_bucket",
    "inter_token_latency_seconds_bucket", "time_per_output_token_seconds_bucket", "e2e_request_latency_seconds_bucket",
    "request_queue_time_seconds_bucket", "request_prefill_time_seconds_bucket", "request_decode_time_seconds_bucket",
    "request_inference_time_seconds_bucket", "request_prompt_tokens_bucket", "request_generation_tokens_bucket",
    "iteration_tokens_total_bucket",
)  # fmt: skip


def test_buckets_are_cumulative_and_include_their_bound() -> None:
    """As Prometheus defines them: ``le`` counts what is at most the bound, +Inf counts all."""
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)

    assert list(histogram.lines("t", 'a="b"')) == [
        't_bucket{a="b",le="1.0"} 2',
        't_bucket{a="b",le="2.0"} 3',
        't_bucket{a="b",le="+Inf"} 4',
        't_sum{a="b"} 12.0',
        't_count{a="b"} 4',
    ]


def test_a_model_name_is_escaped() -> None:
    """Quotes, backslashes and line ends in a label's value are escaped, as the text format asks."""
    text = Meters('a"b\\c\nd', prefix_cache=False).text()

    assert 'model_name="a\\"b\\\\c\\nd"' in text


labels = f'{{model_name="{MODEL}",engine="0"}}'
ENDS = ("stop", "length", "abort", "error")


def values(page: str) -> dict[str, float]:
    """Samples by name and labels."""
    lines = (line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def test_the_page_agrees_with_the_records(served: Served) -> None:
    """After a mixed load with leavers each counter is the sum over the engine's own records, and none ever fell.

    The names are vLLM's, and the project's own scraper reads them all.
    """
    model = FakeModel(config(vocabulary=served.vocabulary))
    policy = Continuous(max_sequences=6, max_batched_tokens=64, prefix_cache=True)
    engine = Engine(model, policy, blocks=BLOCKS, block_tokens=BLOCK, tokenizer=served.tokenizer)
    pages: list[dict[str, float]] = []

    def ask(at: int) -> None:
        prompt = [5] * (1 + BLOCK * (at % 4)) + [6 + at % 3]
        body: dict[str, Any] = {"model": MODEL, "prompt": prompt, "max_tokens": 1 + at, "ignore_eos": True}
        if at % 5 == 0:
            leaving = send(running, "/v1/completions", body | {"max_tokens": 400, "stream": True})
            leaving.getresponse().readline()
            leaving.close()
        else:
            post(running, "/v1/completions", body)
        pages.append(values(get(running, "/metrics")[1]))

    with serving(engine, served) as running:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(ask, range(25)))
        running.until_idle()
        wait_until(lambda: values(get(running, "/metrics")[1])[f"vllm:kv_cache_usage_perc{labels}"] == 0)
        page = get(running, "/metrics")[1]
    found, requests = values(page), engine.requests
    got = [at for at, tokens in enumerate(requests.output_tokens) if tokens]
    ends = Counter(requests.status)

    assert found[f"vllm:generation_tokens_total{labels}"] == sum(requests.output_tokens)
    assert found[f"vllm:prompt_tokens_total{labels}"] == sum(requests.prompt_tokens[at] for at in got)
    assert found[f"vllm:prefix_cache_hits_total{labels}"] == sum(requests.cached_tokens[at] for at in got)
    assert found[f"vllm:num_preemptions_total{labels}"] == sum(requests.preemptions)
    by_end = {name: found[f'vllm:request_success_total{labels[:-1]},finished_reason="{name}"}}'] for name in ENDS}
    assert by_end == {"stop": 0, "length": ends[COMPLETED], "abort": ends[CANCELLED], "error": 0}
    ttft = math.fsum(requests.first_token_s[at] - requests.scheduled_s[at] for at in got)
    assert found[f"vllm:time_to_first_token_seconds_sum{labels}"] == pytest.approx(ttft)
    for name in VLLMS:
        assert f"vllm:{name}{{" in page, name
    assert {frozenset(each) for each in pages} == {frozenset(found)}
    read = samples(page.encode(), WANTED)
    dialect = dialect_of(read)
    assert dialect is not None
    assert dialect.engine == "vllm"
    assert not any(math.isnan(quantities(read, dialect)[name]) for name in QUANTITIES)


def test_counters_only_rise(served: Served) -> None:
    """Read again and again while requests run, nothing that counts falls, and buckets rise with their bound."""
    engine = Engine(
        FakeModel(config(vocabulary=served.vocabulary)),
        Continuous(max_sequences=2, max_batched_tokens=64),
        blocks=BLOCKS,
        block_tokens=BLOCK,
        tokenizer=served.tokenizer,
    )
    body = {"model": MODEL, "prompt": [5], "max_tokens": 60, "ignore_eos": True}
    with serving(engine, served) as running, ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(post, running, "/v1/completions", body) for _ in range(6)]
        before: dict[str, float] = {}
        while not all(each.done() for each in asking):
            page = values(get(running, "/metrics")[1])
            counting = {name: value for name, value in page.items() if _counts(name)}
            assert all(value >= before.get(name, 0) for name, value in counting.items())
            before = counting

    buckets = [value for name, value in page.items() if name.startswith("vllm:e2e_request_latency_seconds_bucket")]
    assert buckets == sorted(buckets)


def _counts(name: str) -> bool:
    return name.partition("{")[0].endswith(("_total", "_count", "_sum", "_bucket"))
