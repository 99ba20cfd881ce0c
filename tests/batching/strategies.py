"""Policies for property tests: every preset, with limits small enough to be felt."""

from __future__ import annotations

from hypothesis import strategies as st

from servewise.batching.policies import Policy
from servewise.batching.policies.vllm import Vllm

vllm = st.builds(
    Vllm,
    max_num_seqs=st.integers(1, 8),
    max_num_batched_tokens=st.integers(8, 200),
    enable_chunked_prefill=st.booleans(),
    long_prefill_token_threshold=st.sampled_from([0, 0, 5, 40]),
    scheduling_policy=st.sampled_from(["fcfs", "priority"]),
    enable_prefix_caching=st.booleans(),
    scheduler_reserve_full_isl=st.booleans(),
    async_scheduling=st.booleans(),
    preemption_mode=st.sampled_from(["recompute", "swap"]),
    swap_blocks=st.integers(0, 12),
)
presets: st.SearchStrategy[Policy] = vllm


def budget_of(policy: Policy) -> int | None:
    """New tokens that a step of a preset may compute; None: it is no preset."""
    return policy.max_num_batched_tokens if isinstance(policy, Vllm) else None
