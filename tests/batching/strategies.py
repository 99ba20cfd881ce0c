"""Policies for property tests: every preset, with limits small enough to be felt."""

from __future__ import annotations

from hypothesis import strategies as st

from servewise.batching.policies import Policy
from servewise.batching.policies.sglang import Sglang
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
sglang = st.builds(
    Sglang,
    max_running_requests=st.integers(1, 8),
    chunked_prefill_size=st.sampled_from([-1, 16, 32, 64, 160]),
    max_prefill_tokens=st.integers(1, 300),
    schedule_policy=st.sampled_from(["fcfs", "lpm", "lof"]),
    schedule_conservativeness=st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.0]),
    enable_mixed_chunk=st.booleans(),
    disable_radix_cache=st.booleans(),
    disable_overlap_schedule=st.booleans(),
)
presets: st.SearchStrategy[Policy] = vllm | sglang


def budget_of(policy: Policy) -> int | None:
    """New tokens that a step of a preset may compute; None: it is no preset."""
    return policy.max_num_batched_tokens if isinstance(policy, Vllm) else None
