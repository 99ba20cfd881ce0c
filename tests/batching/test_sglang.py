"""SGLang's rules (sglang 0.5.6, srt/managers), each as a schedule worked out by hand. Pages are of one token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.batching.driving import filled, planned, prompts, serials, step, steps

from servewise.batching.admission.expected_output import NewTokenRatio
from servewise.batching.batch import Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Sglang
from servewise.batching.sequence import Sequence
from servewise.errors import InputError

SYNC = Sglang(8, 20, disable_overlap_schedule=True)


def test_prefill_batches_go_ahead_of_decode_and_one_long_prompt_is_cut() -> None:
    """Chunks of 20: 8 and 12 of 30; then its other 18 and 2 of a third prompt of 5; then 3; only then all decode."""
    batcher = filled(SYNC, (8, 9), (30, 9), (5, 9), block_tokens=1)

    assert steps(batcher, 4) == [(0, [(0, 8), (1, 12)]), (0, [(1, 18), (2, 2)]), (0, [(2, 3)]), (3, [])]


def test_a_long_prompt_takes_a_chunk_at_a_time() -> None:
    """50 tokens in chunks of 20: 20, 20, 10, and 10 of the next prompt with the last."""
    batcher = filled(SYNC, (50, 9), (30, 9), block_tokens=1)

    assert steps(batcher, 3) == [(0, [(0, 20)]), (0, [(0, 20)]), (0, [(0, 10), (1, 10)])]


def test_mixed_chunks_decode_beside_and_take_of_the_chunk() -> None:
    """The same with mixed chunks: the running one takes 1 of 20, so 18 and 1; then 2 decode beside the last 4."""
    batcher = filled(replace(SYNC, enable_mixed_chunk=True), (8, 9), (30, 9), (5, 9), block_tokens=1)

    assert steps(batcher, 3) == [(0, [(0, 8), (1, 12)]), (1, [(1, 18), (2, 1)]), (2, [(2, 4)])]


def test_without_chunks_the_first_prompt_may_pass_the_limit_alone() -> None:
    """max_prefill_tokens 10: a prompt of 30 alone, then 4 and 5, and not the 1 that would reach 10."""
    policy = replace(SYNC, chunked_prefill_size=-1, max_prefill_tokens=10)
    batcher = filled(policy, (30, 9), (4, 9), (5, 9), (1, 9), block_tokens=1)

    assert steps(batcher, 3) == [(0, [(0, 30)]), (0, [(1, 4), (2, 5)]), (0, [(3, 1)])]


def test_a_newcomer_needs_its_whole_output_beside_the_expected_part_of_the_others() -> None:
    """Pool 100. The first (10 in, 40 out) has made one: 39 left, 0.7 of that is 27.3, its 10 are taken.

    So 62.7 tokens are left. A request of 20 in and 42 out (62) gets in, one of 20 in and 43 out (63) does not.
    """
    for output, admitted in ((42, [1]), (43, [])):
        batcher = filled(SYNC, (10, 40), blocks=100, block_tokens=1)
        step(batcher)
        batcher.add(Sequence(1, 20, output), 0.0)

        assert serials(planned(batcher).admitted) == admitted


def test_whole_outputs_of_the_same_batch_are_held_back_beside_the_expected_ones() -> None:
    """As above 62.7 tokens are left; 10 in and 10 out leave 42.7: then 20 in and 22 out get in, and 23 out do not."""
    for output, admitted in ((22, [1, 2]), (23, [1])):
        batcher = filled(replace(SYNC, chunked_prefill_size=64), (10, 40), blocks=100, block_tokens=1)
        step(batcher)
        batcher.add(Sequence(1, 10, 10), 0.0)
        batcher.add(Sequence(2, 20, output), 0.0)

        assert serials(planned(batcher).admitted) == admitted


def test_the_page_that_a_decoding_one_takes_beside_is_held_back_whole() -> None:
    """Mixed, pages of 16, ten of them: one is full, its next token takes another, so of 144 tokens 128 are left."""
    policy = replace(SYNC, chunked_prefill_size=80, enable_mixed_chunk=True, schedule_conservativeness=0.0)
    for output, admitted in ((63, [1]), (64, [])):
        batcher = filled(policy, (16, 17), blocks=10)
        step(batcher)
        batcher.add(Sequence(1, 64, output), 0.0)

        assert serials(planned(batcher).admitted) == admitted


def test_the_ratio_falls_with_each_decode_step_to_its_floor() -> None:
    """From 0.7 by (0.7 - 0.098) / 600 a step, to 0.098 after 600; conservativeness scales it, up to 1."""
    ratio = NewTokenRatio(1.0)
    ratio.decoded(300)

    assert ratio.now == pytest.approx((0.7 + 0.098) / 2)
    ratio.decoded(10_000)
    assert ratio.now == pytest.approx(0.098)
    ratio.reset()
    assert ratio.now == pytest.approx(0.7)
    assert NewTokenRatio(2.0).now == 1.0


def test_a_retraction_sets_the_ratio_to_what_was_made_of_what_was_allowed() -> None:
    """Three go on that have made 60 of 299: (60 + 20 * 3) / (299 + 1) = 0.4."""
    ratio = NewTokenRatio(0.3)
    ratio.retracted(60, 299, 3)

    assert ratio.now == pytest.approx(0.4)


def test_after_one_that_does_not_fit_none_is_tried_before_one_ends() -> None:
    """``batch_is_full``: a small one that comes later, and would fit, waits until the running one has ended."""
    batcher = filled(replace(SYNC, chunked_prefill_size=64), (10, 5), (60, 40), blocks=110, block_tokens=1)
    step(batcher)
    assert step(batcher)[0].waiting == 1
    batcher.add(Sequence(2, 1, 1), 0.0)
    batches = [step(batcher)[0] for _ in range(4)]

    assert [serials(batch.admitted) for batch in batches] == [[], [], [], [1, 2]]


def retracting(*lengths: tuple[int, int], decodes: int) -> Batcher:
    """40 tokens, nothing held back for running ones; the last joins after ``decodes`` decode steps."""
    policy = replace(SYNC, chunked_prefill_size=-1, schedule_conservativeness=0.0)
    batcher = policy.batcher(BlockPool(40, 1))
    for serial, (prompt, output) in enumerate(lengths):
        if serial == len(lengths) - 1:
            steps(batcher, decodes)
        batcher.add(Sequence(serial, prompt, output), 0.0)
        assert prompts(step(batcher)[0]) == [(serial, prompt)]
    return batcher


def test_of_equals_the_longest_prompt_is_retracted() -> None:
    """27 tokens held, 3 more each step: the fifth decode step finds 1 of 3, all have made 5: the prompt of 12 goes."""
    batcher = retracting((9, 14), (12, 14), (6, 10), decodes=0)

    assert [serials(step(batcher)[0].preempted) for _ in range(5)] == [[], [], [], [], [1]]


def test_who_has_made_the_fewest_tokens_is_retracted() -> None:
    """The third joins two decode steps later; three more fill the pool: it has made 4 where the others made 6."""
    batcher = retracting((9, 14), (12, 14), (6, 8), decodes=2)

    assert [serials(step(batcher)[0].preempted) for _ in range(4)] == [[], [], [], [2]]


def test_a_retracted_one_queues_at_the_end() -> None:
    """SGLang appends it to the waiting queue: one that waits goes first."""
    batcher = retracting((9, 14), (12, 14), (6, 10), decodes=0)
    batcher.add(Sequence(7, 30, 9), 0.0)
    steps(batcher, 5)

    assert [each.serial for each in batcher.unreleased()] == [0, 2, 7, 1]


def test_a_prompt_under_way_takes_of_the_batch_too() -> None:
    """max_prefill_tokens 20: of a prompt of 26 its last 10 leave 10, so one of 9 comes along, one of 10 does not."""
    for other, came in ((9, [(0, 10), (1, 6)]), (10, [(0, 10)])):
        policy = replace(SYNC, chunked_prefill_size=16, max_prefill_tokens=20)
        batcher = filled(policy, (26, 9), block_tokens=1)
        step(batcher)
        batcher.add(Sequence(1, other, 9), 0.0)

        assert prompts(planned(batcher)) == came


def test_blocks_that_just_suffice_retract_nobody_and_cut_no_jump() -> None:
    """A block of 16 is full and one is free: the 16 tokens that fit into it are one jump."""
    policy = replace(SYNC, chunked_prefill_size=16, schedule_conservativeness=0.0)
    batcher = policy.batcher(BlockPool(2, 16))
    batcher.add(Sequence(0, 16, 15), 0.0)
    step(batcher)
    batch = planned(batcher)

    assert (batch.preempted, batch.repeat) == ((), 14)


def test_the_longest_cached_prefix_goes_first() -> None:
    """lpm: of two that wait the later has 48 tokens in the cache and is computed first."""
    pool = BlockPool(None, 16, 16)
    batcher = replace(SYNC, chunked_prefill_size=64, schedule_policy="lpm").batcher(pool)
    batcher.add(Sequence(0, 64, 1, (1, 2, 3, 4)), 0.0)
    step(batcher)
    batcher.add(Sequence(1, 64, 1, (5, 6, 7, 8)), 0.0)
    batcher.add(Sequence(2, 64, 1, (1, 2, 3, 9)), 0.0)

    assert prompts(planned(batcher)) == [(2, 16), (1, 48)]


def test_of_those_that_share_an_uncached_prefix_one_goes_first() -> None:
    """lpm: the second shares 48 tokens with the first, so the third is computed before it, and it then hits."""
    pool = BlockPool(None, 16, 16)
    batcher = replace(SYNC, chunked_prefill_size=128, schedule_policy="lpm").batcher(pool)
    for serial, hashes in enumerate(((1, 2, 3, 4), (1, 2, 3, 5), (6, 7, 8, 9))):
        batcher.add(Sequence(serial, 64, 1, hashes), 0.0)

    assert prompts(step(batcher)[0]) == [(0, 64), (2, 64)]
    assert prompts(step(batcher)[0]) == [(1, 16)]


def test_an_answer_that_is_not_made_yet_is_no_shared_prefix() -> None:
    """lpm: the second goes on from the first's 16 tokens and its answer to come, which nobody knows."""
    pool = BlockPool(None, 16, 16)
    batcher = replace(SYNC, chunked_prefill_size=128, schedule_policy="lpm").batcher(pool)
    for serial, (prompt, output, hashes) in enumerate(
        [(16, 48, (1, 2, 3, 4)), (64, 1, (1, 2, 3, 4)), (48, 1, (6, 7, 8))]
    ):
        batcher.add(Sequence(serial, prompt, output, hashes), 0.0)

    assert prompts(step(batcher)[0]) == [(0, 16), (1, 64), (2, 48)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: replace(SYNC, max_running_requests=0),
        lambda: replace(SYNC, chunked_prefill_size=0),
        lambda: replace(SYNC, schedule_policy="random"),
        lambda: replace(SYNC, schedule_conservativeness=-0.1),
        lambda: SYNC.batcher(BlockPool(None, 16)),
    ],
)
def test_what_cannot_work_is_refused(make: Callable[[], object]) -> None:
    """Limits below one, unknown orders, a negative estimate, chunks of no whole pages."""
    with pytest.raises(InputError):
        make()


def test_it_says_what_it_is() -> None:
    """The settings that change decisions are in its words."""
    assert SYNC.describe.startswith("SGLang, 8 requests, prefill batches of 16384 tokens, chunks of 20, fcfs")
