"""What a server cannot do is known before it is simulated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.made import llama_13b, poisson, server

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.metrics.slo import parse_slo
from servewise.metrics.summary import summarise
from servewise.plan.bounds import decode_alone_s, least_latencies, least_violations, prefill_alone_s

policies = st.one_of(
    st.builds(Static, st.integers(1, 8)),
    st.builds(Dynamic, st.integers(1, 8), st.floats(0.01, 1.0)),
    st.builds(Continuous, st.integers(1, 64), st.integers(64, 4096), st.booleans(), st.booleans()),
)


def test_prompt_alone_is_its_roofline() -> None:
    """2,048 tokens x 26 GFLOP over 312 TFLOP/s is 171 ms, above the 13 ms that the weights take to read."""
    found = prefill_alone_s(server(llama_13b(), Continuous(max_batched_tokens=4096)), 2048)

    assert found == pytest.approx(2048 * 26e9 / 312e12)


def test_chunks_read_the_weights_again() -> None:
    """A prompt of 100 in chunks of 10 takes ten steps of 13 ms each, since each reads 26 GB at 2 TB/s."""
    policy = Continuous(max_sequences=8, max_batched_tokens=10)

    assert prefill_alone_s(server(llama_13b(), policy), 100) == pytest.approx(0.13, rel=0.03)


def test_decode_alone_is_the_studys() -> None:
    """The study's batch of one at 2,048 tokens: 13.8 ms."""
    assert round(decode_alone_s(server(llama_13b()), 2048) * 1e3, 1) == 13.8


@settings(max_examples=25, deadline=None)
@given(policies, st.floats(0.2, 20), st.integers(0, 5))
def test_no_run_beats_the_bounds(policy: Policy, rate: float, seed: int) -> None:
    """Whatever the policy and the rate, no percentile of a simulated run is below the bound's."""
    one, traffic = server(llama_13b(), policy), poisson(40, seed=seed)
    run = one.run(traffic.at_rate(rate))
    found = summarise(run.requests, run.steps, slots=run.slots)
    least = least_latencies(one, traffic)

    for metric in ("ttft", "tpot", "e2e"):
        for name, share in (("p50", 50), ("p90", 90), ("p99", 99)):
            simulated = getattr(getattr(found, metric), name)
            assert simulated >= np.percentile(least[metric], share) * (1 - 1e-9), (metric, name)
    assert found.itl.p50 >= least["itl"][0] * (1 - 1e-9)


def test_impossible_bounds_are_named_worst_first() -> None:
    """13 ms a token cannot be had in 1 ms: 13 times over, worse than a TTFT 2 times over."""
    slo = parse_slo("ttft_p50<=21ms, tpot_p50<=1ms, e2e_p99<=1000s")
    found = least_violations(server(llama_13b()), poisson(200), slo)

    assert [each.bound.metric for each in found] == ["tpot", "ttft"]
    assert found[0].factor == pytest.approx(13.2, rel=0.02)


def test_a_cached_prefix_may_leave_a_block() -> None:
    """With a prefix cache the first token may cost no more than a step that reads the weights."""
    policy = Continuous(prefix_cache=True, max_batched_tokens=8192)

    assert prefill_alone_s(server(llama_13b(), policy), 4096) < 0.02
