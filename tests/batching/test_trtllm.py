"""TensorRT-LLM's rules (batch_manager/{capacity,microBatch}Scheduler.cpp), each as a schedule worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.batching.driving import filled, planned, serials, step, steps

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import TrtLlm
from servewise.batching.sequence import Sequence
from servewise.errors import InputError

SYNC = TrtLlm(8, 100, disable_overlap_scheduler=True)
CHUNKED = replace(SYNC, enable_chunked_prefill=True)


def test_whole_contexts_run_beside_decode_while_they_fit() -> None:
    """Budget 100: 60 and 40; then 2 decodes leave 98: 50, and 48 of it are too few for 49."""
    batcher = filled(SYNC, (60, 9), (40, 9), (50, 9), (49, 9))

    assert steps(batcher, 3) == [(0, [(0, 60), (1, 40)]), (2, [(2, 50)]), (3, [(3, 49)])]


def test_chunks_that_do_not_end_a_context_are_whole_units() -> None:
    """Units of 32, first come: 60, and 32 of the 40 that are left; then its last 48 of 80 beside 1 decode."""
    batcher = filled(CHUNKED, (60, 9), (80, 9))

    assert steps(batcher, 2) == [(0, [(0, 60), (1, 32)]), (1, [(1, 48)])]


def test_equal_progress_shares_units_in_turn() -> None:
    """Units of 32: 100 tokens are one unit each for three, 32 * 3 = 96; the next round's units do not fit into 4."""
    policy = replace(CHUNKED, context_chunking_policy="EQUAL_PROGRESS")
    batcher = filled(policy, (70, 9), (70, 9), (70, 9))

    assert steps(batcher, 2) == [(0, [(0, 32), (1, 32), (2, 32)]), (0, [(0, 32), (1, 32), (2, 32)])]


def test_no_evict_starts_what_can_end_and_pauses_nobody() -> None:
    """Six blocks: prompt 16 and output 32 take three each; the third waits for an end, and nobody is paused."""
    batcher = filled(SYNC, (16, 32), (16, 32), (16, 32), blocks=6)
    batches = [step(batcher)[0] for _ in range(33)]

    assert [serials(batches[number].admitted) for number in (0, 1, 31, 32)] == [[0, 1], [], [], [2]]
    assert not any(batch.preempted for batch in batches)


def test_max_utilization_starts_what_fits_now_and_pauses_the_last() -> None:
    """The same three start at once; when their second blocks are full too, the last one started is paused."""
    policy = replace(SYNC, capacity_scheduler_policy="MAX_UTILIZATION")
    batcher = filled(policy, (16, 32), (16, 32), (16, 32), blocks=6)
    batches = [step(batcher)[0] for _ in range(18)]

    assert serials(batches[0].admitted) == [0, 1, 2]
    assert [serials(batch.preempted) for batch in batches] == [[]] * 17 + [[2]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: replace(SYNC, max_batch_size=0),
        lambda: replace(SYNC, max_batch_size=101),
        lambda: replace(SYNC, tokens_per_block=101),
        lambda: replace(SYNC, pipeline_parallel_size=0),
        lambda: replace(SYNC, capacity_scheduler_policy="STATIC_BATCH"),
        lambda: replace(SYNC, context_chunking_policy="LAST_COME"),
    ],
)
def test_what_cannot_work_is_refused(make: Callable[[], TrtLlm]) -> None:
    """Limits below one, a step too small for a token each or a unit, unknown names."""
    with pytest.raises(InputError):
        make()


def test_its_limits_are_those_of_one_micro_batch() -> None:
    """1.0's ``create_py_executor_instance``: max_num_sequences = max_batch_size * pp_size, and the micro-batch
    scheduler gets max_batch_size and max_num_tokens as they are: 8 a batch may be 24 in three, of 100 tokens each."""
    stages = TrtLlm(8, 100, pipeline_parallel_size=3)

    assert stages.slots == 24
    assert "8 sequences, 100 tokens a step, 3 such batches" in stages.describe


def test_over_stages_nothing_is_decided_ahead() -> None:
    """``_executor_loop_pp`` runs instead of the overlapping loop: who comes while a step runs is in the next one, where
    the overlap scheduler takes it one later."""
    for policy, seen in ((TrtLlm(8, 100), [1, 0, 1]), (TrtLlm(8, 100, pipeline_parallel_size=2), [1, 1, 0])):
        batcher = filled(policy, (10, 9))
        came = []
        for number in range(3):
            batch = planned(batcher)
            if number == 0:
                batcher.add(Sequence(1, 10, 9), 0.0)
            batcher.commit(batch, 1)
            came.append(len(batch.admitted))
        assert came == seen


def test_it_says_what_it_is() -> None:
    """The settings that change decisions are in its words."""
    assert CHUNKED.describe.startswith(
        "TensorRT-LLM, 8 sequences, 100 tokens a step, GUARANTEED_NO_EVICT, context chunk"
    )
    assert planned(filled(TrtLlm(), (10, 2))).decodes == 0


@pytest.mark.parametrize(("policy", "runs"), [("GUARANTEED_NO_EVICT", True), ("MAX_UTILIZATION", False)])
def test_a_long_answer_is_taken_where_nothing_is_computed_again(policy: str, runs: bool) -> None:
    """A context of a step's tokens with a long answer runs if it is never paused; else it could not come back."""
    batcher = replace(SYNC, capacity_scheduler_policy=policy).batcher(BlockPool(None, 16))
    assert batcher.add(Sequence(0, 100, 500), 0.0) is runs
