"""What the stand-in server tells beside answers: its prefix cache and its metrics."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.measure.mock.meters import Meters
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.prefix_cache import PrefixCache
from servewise.measure.mock.process import running_mock


@settings(deadline=None)
@given(
    block=st.integers(1, 6),
    shared=st.lists(st.sampled_from("abc"), max_size=30),
    tails=st.tuples(st.lists(st.just("x"), min_size=1, max_size=9), st.lists(st.just("y"), min_size=1, max_size=9)),
)
def test_whole_blocks_of_a_shared_prefix_are_cached(
    block: int, shared: list[str], tails: tuple[list[str], list[str]]
) -> None:
    """A second prompt finds the whole blocks of what it shares with the first, and no more; the first finds none."""
    cache = PrefixCache(block)
    assert cache.cached(shared + tails[0]) == 0
    assert cache.cached(shared + tails[1]) == len(shared) // block * block
    cache.clear()
    assert cache.cached(shared) == 0


def test_the_last_word_is_never_cached() -> None:
    """The same prompt again leaves at least its last word to be computed, as engines do."""
    cache = PrefixCache(2)
    cache.cached(["a", "b", "c", "d"])
    assert cache.cached(["a", "b", "c", "d"]) == 2


def test_metrics_have_the_names_of_vllm() -> None:
    """The names of vLLM's documentation (docs.vllm.ai, Production Metrics), in Prometheus' text format."""
    page = Meters(kv_tokens=100, running=3, waiting=2, kv_used=25).page("m").decode()
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    named = {name.partition("{")[0]: float(value) for name, value in values.items()}
    assert named["vllm:num_requests_running"] == 3
    assert named["vllm:num_requests_waiting"] == 2
    assert named["vllm:kv_cache_usage_perc"] == 0.25
    assert {"vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"} <= named.keys()


def test_gauges_follow_what_is_served() -> None:
    """With one slot and three requests, one runs, two wait and the pool holds one; when all hang up, nothing."""
    body = b'{"model":"mock","prompt":"a b c","max_tokens":7,"stream":true}'
    with running_mock(MockPlan(first_s=(60.0, 60.0), slots=1, kv_tokens=100)) as server:
        clients = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=20) for _ in range(3)]
        for each in clients:
            each.request("POST", "/v1/completions", body)
        within(lambda: named(server.port)["num_requests_waiting"] == 2)
        seen = named(server.port)
        assert (seen["num_requests_running"], seen["num_requests_waiting"], seen["kv_cache_usage_perc"]) == (1, 2, 0.1)
        for each in clients:
            each.close()
        within(lambda: named(server.port)["num_requests_running"] == 0)
        seen = named(server.port)
    assert (seen["num_requests_running"], seen["num_requests_waiting"], seen["kv_cache_usage_perc"]) == (0, 0, 0)
    assert seen["request_success_total"] == 0


def test_counters_count_tokens() -> None:
    """Three completions of 7 tokens after prompts of 3 are 9 prompt tokens, 21 generated and 3 successes."""
    with running_mock(MockPlan(first_s=(0.0, 0.0), gap_s=0.0)) as server:
        for _ in range(3):
            completed(server.port, "a b c", tokens=7)
        seen = named(server.port)
    assert (seen["prompt_tokens_total"], seen["generation_tokens_total"], seen["request_success_total"]) == (9, 21, 3)


def test_a_shared_prefix_is_cached_and_saves_its_time() -> None:
    """The second prompt's usage tells the shared blocks, and its first token is due earlier by their prefill."""
    plan = MockPlan(first_s=(0.01, 0.01), gap_s=0.0, prefix_block=4, prefill_s_per_token=0.002)
    shared = "a b c d e f g h"
    with running_mock(plan) as server:
        for tail in ("x", "y"):
            completed(server.port, f"{shared} {tail}")
        told = json.loads(completed(server.port, f"{shared} z"))["usage"]
        cold, warm, _ = server.log()
        server.forget()
        completed(server.port, f"{shared} z")
        (forgotten,) = server.log()
    assert told["prompt_tokens_details"]["cached_tokens"] == 8
    assert (cold.cached_tokens, warm.cached_tokens, forgotten.cached_tokens) == (0, 8, 0)
    assert cold.due_s[0] - cold.started_s == pytest.approx(0.01 + 9 * 0.002)
    assert warm.due_s[0] - warm.started_s == pytest.approx(0.01 + 1 * 0.002)


def test_prompts_over_the_context_are_refused() -> None:
    """A prompt that does not fit with its answer is answered 400, as vLLM does; one that fits is served."""
    with running_mock(MockPlan(first_s=(0.0, 0.0), gap_s=0.0, context_tokens=10, first_table_s=(0.0, 0.001))) as server:
        assert b"maximum context length is 10" in completed(server.port, "a b c d", tokens=7)
        assert b"choices" in completed(server.port, "a b c d", tokens=6)


def completed(port: int, prompt: str, tokens: int = 1) -> bytes:
    """The body of one completion that is no stream."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        client.request("POST", "/v1/completions", json.dumps({"model": "mock", "prompt": prompt, "max_tokens": tokens}))
        return client.getresponse().read()
    finally:
        client.close()


def named(port: int) -> dict[str, float]:
    """The metrics by name."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        client.request("GET", "/metrics")
        lines = client.getresponse().read().decode().splitlines()
    finally:
        client.close()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name.partition("{")[0].removeprefix("vllm:"): float(value) for name, value in pairs}


def within(what: Callable[[], bool], patience_s: float = 10.0) -> None:
    """Wait until ``what`` holds."""
    until = time.monotonic() + patience_s
    while not what() and time.monotonic() < until:
        time.sleep(0.005)
