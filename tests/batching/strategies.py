"""Policies for property tests: continuous batching and every preset, with limits small enough to be felt."""

from __future__ import annotations

from hypothesis import strategies as st

from servewise.batching.policies import Continuous, LlamaCpp, Policy, Sglang, TrtLlm, Vllm


def first_come(most_sequences: int = 8, tokens: tuple[int, int] = (8, 200)) -> st.SearchStrategy[Continuous]:
    """Continuous batching in order of arrival; ``tokens`` (least, most) bound the largest step of it."""
    return st.builds(
        Continuous,
        max_sequences=st.integers(1, most_sequences),
        max_batched_tokens=st.integers(*tokens),
        chunked_prefill=st.booleans(),
        reserve_output=st.booleans(),
        prefix_cache=st.booleans(),
    )


continuous = st.builds(
    Continuous,
    max_sequences=st.integers(1, 8),
    max_batched_tokens=st.integers(8, 200),
    chunked_prefill=st.booleans(),
    reserve_output=st.booleans(),
    prefix_cache=st.booleans(),
    order=st.sampled_from(["fcfs", "fcfs", "priority", "shortest_prompt", "shortest_output"]),
    watermark=st.sampled_from([0.0, 0.0, 0.2]),
    swap_blocks=st.sampled_from([0, 0, 3, 10]),
)
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
trtllm = st.builds(
    TrtLlm,
    max_batch_size=st.integers(1, 8),
    max_num_tokens=st.integers(20, 230),
    capacity_scheduler_policy=st.sampled_from(["GUARANTEED_NO_EVICT", "MAX_UTILIZATION"]),
    enable_chunked_prefill=st.booleans(),
    context_chunking_policy=st.sampled_from(["FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS"]),
    tokens_per_block=st.sampled_from([1, 16, 20]),
    enable_block_reuse=st.booleans(),
    disable_overlap_scheduler=st.booleans(),
)
llamacpp = st.builds(
    LlamaCpp,
    n_parallel=st.integers(1, 8),
    n_batch=st.integers(8, 200),
    cont_batching=st.booleans(),
    kv_unified=st.booleans(),
    cache_prompt=st.booleans(),
)
presets: st.SearchStrategy[Policy] = vllm | sglang | trtllm | llamacpp
in_engine = presets.filter(lambda policy: getattr(policy, "preemption_mode", "") != "swap")  # it moves no KV


def budget_of(policy: Policy) -> int | None:
    """New tokens that a step of a preset may compute; None: it is no preset, or has no such limit."""
    match policy:
        case Vllm():
            return policy.max_num_batched_tokens
        case TrtLlm():
            return policy.max_num_tokens
        case LlamaCpp():
            return policy.n_batch
        case Sglang() if policy.chunked_prefill_size != -1:
            return max(policy.chunked_prefill_size, policy.max_running_requests)
        case _:
            return None
