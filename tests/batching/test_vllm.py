"""vLLM's rules (vllm 0.19.0, v1/core/sched/scheduler.py), each as a schedule worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.batching.driving import filled, planned, prompts, serials, step, steps

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Vllm
from servewise.batching.sequence import Sequence
from servewise.errors import InputError

SYNC = Vllm(4, 20, async_scheduling=False)


def test_a_prompt_takes_what_decodes_and_earlier_prompts_leave() -> None:
    """Budget 20: prompt 8 and 12 of 30; then 1 decode, the other 18 and 1 of a third prompt of 5."""
    batcher = filled(SYNC, (8, 9), (30, 9), (5, 9))

    assert steps(batcher, 3) == [(0, [(0, 8), (1, 12)]), (1, [(1, 18), (2, 1)]), (2, [(2, 4)])]


def test_long_prompts_are_cut_at_the_threshold() -> None:
    """Threshold 6: each prompt gets 6 tokens a step at most, so that three advance side by side in a budget of 20."""
    batcher = filled(replace(SYNC, long_prefill_token_threshold=6), (30, 9), (10, 9), (4, 9))

    assert steps(batcher, 2) == [(0, [(0, 6), (1, 6), (2, 4)]), (1, [(0, 6), (1, 4)])]


def test_without_chunks_a_prompt_that_does_not_fit_ends_the_admissions() -> None:
    """Budget 20: 12 and 8 fit; in the next step 2 decodes leave 18 for the third prompt of 18, which waited for 19."""
    batcher = filled(replace(SYNC, enable_chunked_prefill=False), (12, 9), (9, 9), (3, 9))

    assert steps(batcher, 2) == [(0, [(0, 12)]), (1, [(1, 9), (2, 3)])]


def test_without_chunks_a_request_that_outgrows_a_step_is_refused() -> None:
    """Prompt and output of 22 tokens may have to be computed again as 21, more than a step of 20 takes."""
    batcher = replace(SYNC, enable_chunked_prefill=False).batcher(BlockPool(None, 16))

    assert batcher.add(Sequence(0, 12, 9), 0.0)
    assert not batcher.add(Sequence(1, 12, 10), 0.0)


def test_blocks_come_chunk_by_chunk_and_the_check_reserves_nothing() -> None:
    """Six blocks, two prompts of 64 tokens in chunks of 20: both pass the check of four blocks, and hold two each."""
    policy = replace(SYNC, max_num_batched_tokens=40, long_prefill_token_threshold=20)
    batcher = filled(policy, (64, 2), (64, 2), blocks=6)
    batch = planned(batcher)

    assert prompts(batch) == [(0, 20), (1, 20)]
    assert [chunk.sequence.blocks for chunk in batch.chunks] == [2, 2]


def test_the_check_of_the_whole_prompt_can_be_turned_off() -> None:
    """Five blocks, 2 held: a second prompt of 64 tokens is refused by the check, and let in for its chunk without."""
    for check, admitted in ((True, [0]), (False, [0, 1])):
        policy = replace(SYNC, max_num_batched_tokens=40, long_prefill_token_threshold=20)
        batcher = filled(replace(policy, scheduler_reserve_full_isl=check), (64, 2), (64, 2), blocks=5)

        assert serials(planned(batcher).admitted) == admitted


def test_a_prompt_under_way_preempts_the_youngest_for_its_next_chunk() -> None:
    """Five blocks: in the third step both prompts want a third block and one is free: the younger goes, and waits."""
    policy = replace(SYNC, max_num_batched_tokens=40, long_prefill_token_threshold=16, scheduler_reserve_full_isl=False)
    batcher = filled(policy, (64, 2), (64, 2), blocks=5)
    steps(batcher, 2)
    batch = planned(batcher)

    assert (serials(batch.preempted), prompts(batch)) == ([1], [(0, 16)])
    assert batch.preempted[0].computed_tokens == 0


def test_the_youngest_goes_back_and_is_first_in_line() -> None:
    """fcfs: of two running and one waiting the second goes when blocks run out, and comes back before the third."""
    batcher = filled(replace(SYNC, max_num_seqs=2, max_num_batched_tokens=100), (16, 4), (16, 4), (16, 4), blocks=3)
    step(batcher)
    batch, _ = step(batcher)
    while not (came := planned(batcher)).admitted:
        batcher.commit(came, 1)

    assert serials(batch.preempted) == [1]
    assert serials(came.admitted)[0] == 1


def test_priority_admits_the_lowest_number_and_preempts_the_highest() -> None:
    """Priorities 2, 0, 1: admitted 1, 2, 0; when blocks run out the one of priority 2 goes, though it came first."""
    policy = replace(SYNC, max_num_batched_tokens=100, scheduling_policy="priority")
    batcher = filled(policy, (16, 9), (16, 9), (16, 9), blocks=5, priorities=(2, 0, 1))
    first, _ = step(batcher)
    second, _ = step(batcher)

    assert serials(first.admitted) == [1, 2, 0]
    assert serials(second.preempted) == [0]


def test_a_swapped_sequence_comes_back_with_its_kv_and_computes_nothing() -> None:
    """v0: the younger's 16 tokens move out; when the elder ends they move in, and it decodes in that very step."""
    policy = replace(SYNC, max_num_batched_tokens=100, preemption_mode="swap", swap_blocks=1)
    batcher = filled(policy, (16, 3), (16, 3), blocks=3)
    step(batcher)
    out, _ = step(batcher)
    swapped = out.preempted[0]

    assert (out.moved_tokens, swapped.stored_tokens, swapped.generated) == (16, 16, 1)
    step(batcher)
    back, _ = step(batcher)
    assert (serials(back.admitted), back.moved_tokens, back.chunks, back.decodes) == ([1], 16, (), 1)
    assert (back.context_tokens, swapped.stored_tokens) == (17, 0)


def test_without_room_on_the_host_it_is_computed_again() -> None:
    """17 tokens take two blocks of the host, which has one."""
    policy = replace(SYNC, max_num_batched_tokens=100, preemption_mode="swap", swap_blocks=1)
    batcher = filled(policy, (17, 40), (17, 40), blocks=5)
    while not (batch := step(batcher)[0]).preempted:
        pass

    assert (batch.moved_tokens, batch.preempted[0].stored_tokens) == (0, 0)
    assert batch.preempted[0].target_tokens == 17 + batch.preempted[0].generated


def test_async_scheduling_sees_an_arrival_one_step_later() -> None:
    """It comes while the first step runs: the second was decided without it, the third admits it."""
    for ahead, admitted in ((False, [[1], []]), (True, [[], [1]])):
        batcher = filled(Vllm(4, 20, async_scheduling=ahead), (8, 9))
        step(batcher)
        batcher.add(Sequence(1, 4, 9), 0.5)

        assert [serials(step(batcher)[0].admitted) for _ in range(2)] == admitted


def test_async_scheduling_frees_a_slot_one_step_later() -> None:
    """One slot, outputs of 2: without it the second starts in the third step; with it nothing else runs, so too.

    With a second slot that goes on, the third sequence starts a step later.
    """
    for ahead, admitted in ((False, 2), (True, 3)):
        batcher = filled(Vllm(2, 20, async_scheduling=ahead), (4, 2), (4, 9), (4, 2))
        batches = [step(batcher)[0] for _ in range(4)]

        assert [number for number, batch in enumerate(batches) if 2 in serials(batch.admitted)] == [admitted]
        alone = filled(Vllm(1, 20, async_scheduling=ahead), (4, 2), (4, 2))
        assert [len(step(alone)[0].admitted) for _ in range(3)] == [1, 0, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: replace(SYNC, max_num_seqs=0),
        lambda: replace(SYNC, max_num_batched_tokens=3),
        lambda: replace(SYNC, scheduling_policy="sjf"),
        lambda: replace(SYNC, preemption_mode="drop"),
        lambda: replace(SYNC, max_num_partial_prefills=2),
        lambda: replace(SYNC, long_prefill_token_threshold=-1),
    ],
)
def test_what_vllm_refuses_is_refused(make: Callable[[], Vllm]) -> None:
    """Limits below one, a budget below the slots, unknown names, and what v1 does not support."""
    with pytest.raises(InputError):
        make()


def test_it_says_what_it_is() -> None:
    """The settings that change decisions are in its words."""
    words = replace(Vllm(256, 8192), scheduling_policy="priority").describe

    assert words.startswith("vLLM v1, 256 sequences, 8192 tokens a step, chunked prefill, by priority")
