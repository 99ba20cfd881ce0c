"""Capacity moves the right way: more memory, a larger share and fewer bits never give fewer tokens."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.deployment.builders import LLAMA_2_7B, LLAMA_2_13B, LLAMA_3_8B, deployment, device

from servewise.deployment.capacity import KvCapacity, kv_capacity, max_sequences
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.precision import Precision
from servewise.units import GIB

ENGINES = (
    "ideal",
    "vllm-0.2",
    "vllm-0.6",
    "vllm-0.9",
    "vllm",
    "sglang-0.1",
    "sglang-0.4.8",
    "sglang",
    "trtllm",
    "llamacpp",
)
shares = st.floats(0.05, 1.0)
memories = st.integers(1, 300 * GIB)


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    """Any of three models on any memory, split and engine."""
    tensor = draw(st.sampled_from([1, 2, 4, 8]))
    return deployment(
        draw(st.sampled_from([LLAMA_2_7B, LLAMA_2_13B, LLAMA_3_8B])),
        draw(memories),
        engine=draw(st.sampled_from(ENGINES)),
        parallelism=Parallelism(tensor=tensor, pipeline=draw(st.sampled_from([1, 2, 3]))),
        limits=Limits(memory_utilization=draw(shares), max_sequences=draw(st.sampled_from([None, 1, 64]))),
    )


def tokens(asked: Deployment) -> int:
    """KV tokens, 0 where it does not fit."""
    answer = kv_capacity(asked)
    return answer.kv_tokens if isinstance(answer, KvCapacity) else 0


@given(deployments(), st.integers(0, 100 * GIB))
def test_more_memory_never_fewer_tokens(asked: Deployment, more: int) -> None:
    """More memory never holds fewer tokens."""
    larger = replace(asked, accelerator=device(asked.accelerator.memory_bytes + more))
    if asked.engine not in ("vllm-0.9", "vllm", "sglang"):  # their defaults grow with the device: see the next test
        assert tokens(larger) >= tokens(asked)


@given(deployments(), st.integers(0, 100 * GIB))
def test_more_memory_with_stated_step(asked: Deployment, more: int) -> None:
    """With the largest step stated, more memory never holds fewer tokens on any engine."""
    limits = replace(asked.limits, max_batched_tokens=2048, max_sequences=64)
    stated = replace(asked, limits=limits)
    larger = replace(stated, accelerator=device(asked.accelerator.memory_bytes + more))

    assert tokens(larger) >= tokens(stated)


@given(deployments(), shares)
def test_larger_share_never_fewer_tokens(asked: Deployment, share: float) -> None:
    """A larger share of memory never holds fewer tokens."""
    low, high = sorted((share, asked.limits.memory_utilization or 1.0))
    small, large = (replace(asked, limits=replace(asked.limits, memory_utilization=each)) for each in (low, high))

    assert tokens(large) >= tokens(small)


@given(deployments(), st.integers(1, 32), st.integers(1, 32))
def test_fewer_bits_never_fewer_tokens(asked: Deployment, one: int, other: int) -> None:
    """A cache of fewer bits never holds fewer tokens."""
    few, many = (replace(asked, kv=Precision("fp8", each, "fp8")) for each in sorted((one, other)))

    assert tokens(few) >= tokens(many)


@given(deployments())
def test_terms_sum_to_memory(asked: Deployment) -> None:
    """The breakdown sums to the memory of one accelerator, to the byte."""
    answer = kv_capacity(asked)

    assert sum(term.bytes for term in answer.breakdown) == asked.accelerator.memory_bytes


@given(deployments(), st.integers(1, 200_000))
def test_sequences_fit_their_pool(asked: Deployment, context: int) -> None:
    """The sequences said to fit take no more than the pool, and one more would not fit."""
    answer = kv_capacity(asked)
    if not isinstance(answer, KvCapacity):
        return
    held = max_sequences(asked, answer, context)
    blocks = -(-context // answer.block_tokens)

    assert held * blocks <= answer.blocks
    assert (held + 1) * blocks * answer.block_tokens * answer.kv_bytes_per_token > answer.kv_budget_bytes * (1 - 1e-9)
