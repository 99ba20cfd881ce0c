"""What a server cannot do is known before it is simulated."""

from __future__ import annotations

import pytest
from tests.plan.made import fixed, llama_13b, poisson, server

from servewise.batching.policies import Continuous, LlamaCpp, Policy, Sglang, Static, TrtLlm, Vllm
from servewise.metrics.slo import parse_slo
from servewise.plan.bounds import Alone, alone_of, least_latencies, least_violations
from servewise.plan.lengths import lengths_of
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.workload.request import Request


def alone(policy: Policy, prompt: int) -> Alone:
    """The study's server under ``policy`` with a request of that prompt."""
    return alone_of(server(llama_13b(), policy), lengths_of(fixed(2, prompt, 2), None))


def shared(count: int, prompt: int, block: int) -> Traffic:
    """Requests of one and the same prompt, hashed."""
    hashes = tuple(range(prompt // block))
    return Traffic(tuple(Request(serial, float(serial), prompt, 10, hashes) for serial in range(count)), 1.0)


@pytest.mark.parametrize(
    "policy",
    [
        Continuous(max_batched_tokens=4096),
        Continuous(chunked_prefill=False),
        Static(4),
        Vllm(256, 8192),
        Vllm(256, 4096, enable_chunked_prefill=False),
        TrtLlm(),
        LlamaCpp(n_batch=4096),
        Sglang(256, -1),
    ],
)
def test_prompt_alone_is_its_roofline(policy: Policy) -> None:
    """2,048 tokens x 26 GFLOP over 312 TFLOP/s is 171 ms, above the 13 ms that the weights take to read."""
    assert alone(policy, 2048).first_token_s(2048) == pytest.approx(2048 * 26e9 / 312e12)


@pytest.mark.parametrize("policy", [Continuous(8, 10), Vllm(8, 10), Vllm(8, 4096, long_prefill_token_threshold=10)])
def test_chunks_read_the_weights_again(policy: Policy) -> None:
    """A prompt of 100 in chunks of 10 takes ten steps of 13 ms each, since each reads 26 GB at 2 TB/s."""
    assert alone(policy, 100).first_token_s(100) == pytest.approx(0.13, rel=0.03)


def test_decode_alone_is_the_studys() -> None:
    """The study's batch of one at 2,048 tokens: 13.8 ms."""
    assert round(alone(Continuous(), 500).token_s(2048) * 1e3, 1) == 13.8


def test_impossible_bounds_are_named_worst_first() -> None:
    """13 ms a token cannot be had in 1 ms: 13 times over, worse than a TTFT 2 times over."""
    slo = parse_slo("ttft_p50<=21ms, tpot_p50<=1ms, e2e_p99<=1000s")
    found = least_violations(server(llama_13b()), lengths_of(poisson(200), None), slo)

    assert [each.bound.metric for each in found] == ["tpot", "ttft"]
    assert found[0].factor == pytest.approx(13.2, rel=0.02)


def test_a_cached_prefix_leaves_what_fills_no_block() -> None:
    """Of equal prompts of 4,096 tokens in blocks of 512 a cache has 3,584 at most: 512 tokens are 43 ms.

    One token is always left to compute, so that a prompt of whole blocks computes its last one.
    """
    policy = Continuous(prefix_cache=True)
    lengths = lengths_of(shared(3, 4096, 512), 512)
    one = Server(policy=policy, estimator=llama_13b(), blocks=4000, block_tokens=16, hash_block_tokens=512)

    assert lengths.uncached.tolist() == [512] * 3
    assert least_latencies(one, lengths)["ttft"][0] == pytest.approx(512 * 26e9 / 312e12)


def test_what_nobody_shares_is_not_cached() -> None:
    """A cache helps nothing where no two prompts begin alike, nor a server without one."""
    assert lengths_of(shared(1, 4096, 512), 512).uncached.tolist() == [4096]
    without = server(llama_13b(), Continuous())
    assert least_latencies(without, lengths_of(shared(3, 4096, 512), 512))["ttft"][0] > 0.3
