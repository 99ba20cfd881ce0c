"""What the stand-in server tells beside answers: its prefix cache and its metrics."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servewise.measure.mock.meters import Meters
from servewise.measure.mock.prefix_cache import PrefixCache


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
