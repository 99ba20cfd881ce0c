"""What each policy refuses, with the setting's own name and a cure; what it takes; and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous, Dynamic, LlamaCpp, Policy, Sglang, Static, TrtLlm, Vllm
from servewise.batching.sequence import Sequence
from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.draft_length import FixedLength, UntilBatch
from servewise.batching.speculative.policy import Groupable, Speculative
from servewise.errors import InputError

VLLM, SGLANG, TRTLLM, LLAMACPP = Vllm(8, 100), Sglang(8, 64), TrtLlm(8, 100), LlamaCpp()

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Static(0), "batch must be"),
    (lambda: Dynamic(0, 1.0), "batch must be"),
    (lambda: Dynamic(1, -0.1), "window must be"),
    (lambda: Continuous(0), "max sequences must be"),
    (lambda: Continuous(1, 0), "max batched tokens must be"),
    (lambda: Continuous(watermark=-0.1), "watermark must be"),
    (lambda: Continuous(watermark=1.0), "a watermark of 1.0 holds"),
    (lambda: Continuous(swap_blocks=-1), "swap blocks must be"),
    (lambda: Continuous(9, 8), "max batched tokens (8) are fewer than max sequences (9)"),
    (lambda: Continuous(order="longest"), "order: unknown order 'longest'"),
    (lambda: Vllm(0, 100), "max_num_seqs must be"),
    (lambda: Vllm(8, 0), "max_num_batched_tokens must be"),
    (lambda: Vllm(9, 8), "max_num_batched_tokens (8) is below max_num_seqs (9)"),
    (lambda: replace(VLLM, long_prefill_token_threshold=-1), "long_prefill_token_threshold must be"),
    (lambda: replace(VLLM, swap_blocks=-1), "swap_blocks must be"),
    (lambda: replace(VLLM, scheduling_policy="random"), "scheduling_policy: unknown scheduling_policy 'random'"),
    (lambda: replace(VLLM, preemption_mode="drop"), "preemption_mode: unknown preemption_mode 'drop'"),
    (lambda: replace(VLLM, max_num_partial_prefills=2), "concurrent partial prefills are not supported"),
    (lambda: replace(VLLM, max_long_partial_prefills=2), "concurrent partial prefills are not supported"),
    (lambda: Sglang(0, 64), "max_running_requests must be"),
    (lambda: Sglang(8, 0), "chunked_prefill_size must be"),
    (lambda: Sglang(8, -2), "chunked_prefill_size must be"),
    (lambda: replace(SGLANG, max_prefill_tokens=0), "max_prefill_tokens must be"),
    (lambda: replace(SGLANG, schedule_policy="random"), "schedule_policy: unknown schedule_policy 'random'"),
    (lambda: replace(SGLANG, schedule_conservativeness=-0.1), "schedule_conservativeness must not be negative"),
    (lambda: replace(SGLANG, schedule_conservativeness=float("inf")), "schedule_conservativeness must not be"),
    (lambda: SGLANG.batcher(BlockPool(10, 48)), "chunked_prefill_size (64) is no multiple of the page size (48)"),
    (lambda: TrtLlm(0), "max_batch_size must be"),
    (lambda: TrtLlm(8, 0), "max_num_tokens must be"),
    (lambda: replace(TRTLLM, tokens_per_block=0), "tokens_per_block must be"),
    (lambda: TrtLlm(101, 100), "max_batch_size (101) is above max_num_tokens (100)"),
    (lambda: replace(TRTLLM, tokens_per_block=101), "tokens_per_block (101) is above max_num_tokens (100)"),
    (lambda: replace(TRTLLM, capacity_scheduler_policy="X"), "capacity_scheduler_policy: unknown capacity_scheduler"),
    (lambda: replace(TRTLLM, context_chunking_policy="X"), "context_chunking_policy: unknown context_chunking_policy"),
    (lambda: LlamaCpp(n_parallel=0), "n_parallel must be"),
    (lambda: LlamaCpp(n_batch=0), "n_batch must be"),
    (lambda: LlamaCpp(n_ubatch=0), "n_ubatch must be"),
    (lambda: LlamaCpp(9, 8), "n_parallel (9) is above n_batch (8)"),
    (lambda: FixedLength(-1), "draft-tokens: a draft holds 0 to 256 tokens, not -1"),
    (lambda: FixedLength(257), "draft-tokens: a draft holds 0 to 256 tokens, not 257"),
    (lambda: UntilBatch(257, 1), "draft-tokens: a draft holds"),
    (lambda: UntilBatch(4, 0), "speculate-until-batch: must be 1 or more, not 0"),
    (lambda: Acceptance(()), "acceptance: give at least one"),
    (lambda: Acceptance((0.5, 1.5)), "acceptance: a chance lies between 0 and 1, not 1.5"),
    (lambda: Acceptance((0.5,), hit_rate=-0.5), "acceptance: a chance lies between 0 and 1, not -0.5"),
    (lambda: BlockPool(10, 48, 512), "hash blocks of 512 tokens are no multiple of KV blocks of 48"),
]
UNCURED = ("a draft holds", "until-batch", "a chance lies")  # what is wrong says what to do


@pytest.mark.parametrize(("make", "words"), REFUSED, ids=[words[:40] for _, words in REFUSED])
def test_what_cannot_work_is_refused_by_its_name(make: Callable[[], object], words: str) -> None:
    """The message begins with what is wrong, by the name that the user wrote, and says what to do."""
    with pytest.raises(InputError) as caught:
        make()

    assert str(caught.value).startswith(words)
    assert caught.value.hint or any(each in words for each in UNCURED) or "did you mean" in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Static(1),
        lambda: Dynamic(1, 0.0),
        lambda: Continuous(8, 8, watermark=0.0, swap_blocks=0),
        lambda: Continuous(9, 8, chunked_prefill=False),
        lambda: Continuous(1, 1, watermark=0.99),
        lambda: Vllm(8, 8, long_prefill_token_threshold=0, swap_blocks=0),
        lambda: Sglang(1, -1, max_prefill_tokens=1, schedule_conservativeness=0.0),
        lambda: Sglang(1, 1),
        lambda: TrtLlm(20, 20, tokens_per_block=20),
        lambda: LlamaCpp(8, 8, n_ubatch=1),
        lambda: FixedLength(0),
        lambda: FixedLength(256),
        lambda: UntilBatch(0, 1),
        lambda: Acceptance((0.0, 1.0), hit_rate=0.0),
    ],
)
def test_the_limits_themselves_are_taken(make: Callable[[], object]) -> None:
    """The least and the most that can work."""
    make()


DESCRIBED: list[tuple[Policy, str]] = [
    (Static(3), "static, 3 slots"),
    (Dynamic(3, 0.05), "dynamic, 3 slots, window 0.05 s"),
    (Continuous(2, 20), "continuous, 2 slots, 20 tokens a step, chunked prefill"),
    (
        Continuous(2, 20, chunked_prefill=False, reserve_output=True, prefix_cache=True, order="priority"),
        "continuous, 2 slots, 20 tokens a step, whole prompts, reserved output, prefix cache, priority first",
    ),
    (
        Continuous(2, 20, watermark=0.01, swap_blocks=7),
        "continuous, 2 slots, 20 tokens a step, chunked prefill, watermark 0.01, swap to 7 blocks on the host",
    ),
    (
        Vllm(8, 100, enable_prefix_caching=False, async_scheduling=False),
        "vLLM v1, 8 sequences, 100 tokens a step, chunked prefill",
    ),
    (
        Vllm(8, 100, enable_chunked_prefill=False, scheduling_policy="priority", scheduler_reserve_full_isl=False),
        "vLLM v1, 8 sequences, 100 tokens a step, whole prompts, by priority, prefix cache, async scheduling, "
        "no check that a whole prompt fits",
    ),
    (
        Vllm(8, 100, long_prefill_token_threshold=40, preemption_mode="swap", swap_blocks=7, async_scheduling=False),
        "vLLM v1, 8 sequences, 100 tokens a step, chunked prefill, chunks up to 40 tokens, prefix cache, "
        "swap to 7 blocks on the host",
    ),
    (
        Sglang(8, 64, disable_radix_cache=True, disable_overlap_schedule=True),
        "SGLang, 8 requests, prefill batches of 16384 tokens, chunks of 64, fcfs, conservativeness 1",
    ),
    (
        Sglang(8, -1, max_prefill_tokens=50, schedule_policy="lpm", schedule_conservativeness=0.3),
        "SGLang, 8 requests, prefill batches of 50 tokens, whole prompts, lpm, conservativeness 0.3, radix cache, "
        "overlap",
    ),
    (
        Sglang(8, 64, enable_mixed_chunk=True, disable_radix_cache=True, disable_overlap_schedule=True),
        "SGLang, 8 requests, prefill batches of 16384 tokens, chunks of 64, fcfs, conservativeness 1, "
        "decode beside chunks",
    ),
    (
        TrtLlm(8, 100, enable_block_reuse=False, disable_overlap_scheduler=True),
        "TensorRT-LLM, 8 sequences, 100 tokens a step, GUARANTEED_NO_EVICT, whole contexts",
    ),
    (
        TrtLlm(8, 100, "MAX_UTILIZATION", enable_chunked_prefill=True, context_chunking_policy="EQUAL_PROGRESS"),
        "TensorRT-LLM, 8 sequences, 100 tokens a step, MAX_UTILIZATION, context chunks EQUAL_PROGRESS by 32, "
        "block reuse, overlap",
    ),
    (LlamaCpp(2, 20), "llama.cpp, 2 slots, 20 tokens a step, unified KV cache, prompt cache"),
    (
        LlamaCpp(2, 20, cont_batching=False, kv_unified=False, cache_prompt=False),
        "llama.cpp, 2 slots, 20 tokens a step, a cache for each slot, prompts only while nobody generates",
    ),
]


@pytest.mark.parametrize(("policy", "words"), DESCRIBED, ids=[words[:60] for _, words in DESCRIBED])
def test_the_conditions_name_every_setting_that_changes_decisions(policy: Policy, words: str) -> None:
    """A figure stands beside these words: what is on is in them, what is off is not."""
    assert policy.describe == words


@pytest.mark.parametrize(
    ("policy", "slots", "cached"),
    [
        (Static(3), 3, False),
        (Dynamic(4), 4, False),
        (Continuous(5, prefix_cache=True), 5, True),
        (Continuous(5), 5, False),
        (Vllm(6, 100), 6, True),
        (Vllm(6, 100, enable_prefix_caching=False), 6, False),
        (Sglang(7, 64), 7, True),
        (Sglang(7, 64, disable_radix_cache=True), 7, False),
        (TrtLlm(8), 8, True),
        (TrtLlm(8, enable_block_reuse=False), 8, False),
        (LlamaCpp(9), 9, True),
        (LlamaCpp(9, cache_prompt=False), 9, False),
    ],
)
def test_slots_and_cache_are_those_of_the_settings(policy: Policy, slots: int, cached: bool) -> None:
    """By each engine's own name for them; a policy that speculates has its own policy's."""
    assert (policy.slots, bool(getattr(policy, "prefix_cache", False))) == (slots, cached)
    if not isinstance(policy, Static | Dynamic):
        speculating = Speculative(
            cast("Groupable", policy), Acceptance((0.5,)), lambda: FixedLength(2), words="drafting"
        )
        assert (speculating.slots, speculating.prefix_cache, speculating.name) == (slots, cached, policy.name)
        assert speculating.describe == f"{policy.describe}, drafting"


@pytest.mark.parametrize(
    ("policy", "ahead"),
    [
        (Vllm(8, 100), True),
        (Vllm(8, 100, async_scheduling=False), False),
        (Vllm(8, 100, enable_chunked_prefill=False), True),
        (Vllm(8, 100, enable_chunked_prefill=False, async_scheduling=False), False),
        (Sglang(8, 64), True),
        (Sglang(8, 64, disable_overlap_schedule=True), False),
        (TrtLlm(8), True),
        (TrtLlm(8, disable_overlap_scheduler=True), False),
        (TrtLlm(8, enable_chunked_prefill=True), True),
        (TrtLlm(8, enable_chunked_prefill=True, disable_overlap_scheduler=True), False),
        (Continuous(8), False),
        (LlamaCpp(8), False),
    ],
)
def test_decisions_lag_a_step_where_the_engine_overlaps(policy: Policy, ahead: bool) -> None:
    """Async scheduling of vLLM, the overlap schedulers of SGLang and TensorRT-LLM."""
    assert bool(getattr(policy.batcher(BlockPool(10, 16)), "decides_ahead", False)) is ahead


@pytest.mark.parametrize(
    "policy",
    [Static(1), Dynamic(1, 0.0), Continuous(2), Continuous(2, chunked_prefill=False), VLLM, SGLANG, TRTLLM, LLAMACPP],
    ids=lambda policy: policy.name,
)
def test_the_models_window_bounds_what_is_read(policy: Policy) -> None:
    """A window of 20 and 18 tokens of prompt: 19 and 20 are read inside it, then 20 for ever."""
    batcher = policy.batcher(BlockPool(None, 16), 20)
    batcher.add(Sequence(0, 18, 6), 0.0)
    batcher.close()
    reads = []
    while (batch := batcher.plan(0.0)) is not None:
        if batch.decodes:
            reads.append((batch.context_tokens, batch.windowed_tokens, batch.windowed_growth))
        batcher.commit(batch, 1)

    assert reads == [(19, 19, 1), (20, 20, 1), (21, 20, 0), (22, 20, 0), (23, 20, 0)]
