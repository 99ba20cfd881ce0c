"""What each policy puts into a step, worked out by hand."""

from __future__ import annotations

import pytest

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous, Dynamic, Static
from servewise.batching.sequence import Sequence
from servewise.errors import InputError


def planned(batcher: Batcher, now_s: float = 0.0) -> Batch:
    """The next step, which must exist."""
    batch = batcher.plan(now_s)
    assert batch is not None
    return batch


def step(batcher: Batcher, now_s: float = 0.0) -> tuple[Batch, list[int]]:
    """Plan and run one step; the batch and the serials of those released."""
    batch = planned(batcher, now_s)
    return batch, [each.serial for each in batcher.commit(batch, 1)]


def prompts(batch: Batch) -> list[tuple[int, int, int]]:
    """(serial, computed, new tokens) of the step's chunks."""
    return [(chunk.sequence.serial, chunk.computed_tokens, chunk.new_tokens) for chunk in batch.chunks]


def filled(policy: Static | Dynamic | Continuous, *lengths: tuple[int, int], blocks: int | None = None) -> Batcher:
    """A policy with one waiting sequence for each (prompt, output)."""
    batcher = policy.batcher(BlockPool(blocks, 16))
    for serial, (prompt, output) in enumerate(lengths):
        assert batcher.add(Sequence(serial, prompt, output), 0.0)
    return batcher


def test_static_waits_for_a_full_batch() -> None:
    """One of two: nothing runs, and nothing ever will until another comes."""
    batcher = filled(Static(2), (10, 3))

    assert batcher.plan(1e9) is None
    assert batcher.add(Sequence(1, 10, 3), 0.0)
    assert prompts(planned(batcher)) == [(0, 0, 10), (1, 0, 10)]


def test_static_releases_all_when_its_longest_ends() -> None:
    """Outputs of 1 and 3 tokens: both leave after the third step, and the row of the first is computed to the end."""
    batcher = filled(Static(2), (10, 1), (10, 3))
    first, second, third = (step(batcher) for _ in range(3))

    assert [] == first[1] == second[1]
    assert third[1] == [0, 1]
    assert (second[0].decodes, second[0].active) == (2, 1)


def test_static_starts_a_part_batch_when_nothing_more_will_come() -> None:
    """After ``close`` the rest runs."""
    batcher = filled(Static(8), (10, 1))
    batcher.close()

    assert planned(batcher).running == 1


def test_dynamic_starts_when_the_oldest_has_waited_for_the_window() -> None:
    """One request, a window of 5 s: at 5 s it runs alone."""
    batcher = filled(Dynamic(8, 5.0), (10, 1))

    assert batcher.plan(4.9) is None
    assert batcher.wake_s() == 5.0
    assert planned(batcher, 5.0).running == 1


def test_a_batch_takes_no_one_in_while_it_runs() -> None:
    """Whoever comes later waits for the whole batch."""
    batcher = filled(Dynamic(2, 0.0), (10, 5))
    step(batcher)
    batcher.add(Sequence(1, 10, 1), 0.0)

    assert planned(batcher).running == 1


def test_continuous_lets_the_next_in_as_soon_as_one_ends() -> None:
    """One slot, outputs 2 and 1: the second starts in the third step."""
    batcher = filled(Continuous(1, 100), (10, 2), (10, 1))
    ended = [step(batcher)[1] for _ in range(3)]

    assert ended == [[], [0], [1]]


def test_decode_comes_first_and_prompts_share_what_is_left_of_the_budget() -> None:
    """Budget 20: a prompt of 8, then 12 of the next prompt's 30; then 1 decode and 18 (all) of its rest."""
    batcher = filled(Continuous(4, 20), (8, 5), (30, 5))

    assert prompts(step(batcher)[0]) == [(0, 0, 8), (1, 0, 12)]
    second = step(batcher)[0]
    assert (second.decodes, prompts(second)) == (1, [(1, 12, 18)])


def test_whole_prompts_run_in_steps_of_their_own() -> None:
    """Without chunking a step holds whole prompts or decodes, never both, and a long prompt runs alone."""
    batcher = filled(Continuous(4, 20, chunked_prefill=False), (8, 3), (12, 3), (30, 3))
    first, second, third = (step(batcher)[0] for _ in range(3))

    assert (prompts(first), first.decodes) == ([(0, 0, 8), (1, 0, 12)], 0)
    assert (prompts(second), second.decodes) == ([(2, 0, 30)], 0)
    assert (prompts(third), third.decodes) == ([], 3)


def test_the_youngest_is_preempted_and_computes_its_tokens_again() -> None:
    """Two sequences of one full block each, three blocks: the younger goes back with prompt + 1 token to compute."""
    batcher = filled(Continuous(2, 100), (16, 10), (16, 10), blocks=3)
    step(batcher)
    batch, _ = step(batcher)

    assert [each.serial for each in batch.preempted] == [1]
    younger = batch.preempted[0]
    assert (younger.target_tokens, younger.computed_tokens, younger.preemptions) == (17, 0, 1)


def test_no_one_is_admitted_in_the_step_that_preempts() -> None:
    """The blocks that a preemption frees go to the running ones first."""
    batcher = filled(Continuous(2, 100), (16, 10), (16, 10), blocks=3)
    step(batcher)

    assert step(batcher)[0].chunks == ()


def test_reserved_output_is_never_preempted() -> None:
    """With prompt and output reserved the second waits although its prompt would fit."""
    batcher = filled(Continuous(2, 100, reserve_output=True), (16, 10), (16, 10), blocks=3)

    assert planned(batcher).running == 1


def test_a_member_of_a_static_batch_that_ends_early_is_released_with_the_last() -> None:
    """Two of a batch are finished after the first step: the first alone releases nobody, the second both."""
    batcher = filled(Static(2), (10, 5), (10, 9), (10, 3))
    batch, _ = step(batcher)
    first, second = (chunk.sequence for chunk in batch.chunks)

    assert batcher.finish(first) == []
    assert planned(batcher).decodes == 2  # its row is held
    assert batcher.finish(first) == []
    assert batcher.finish(second) == [first, second]
    batcher.close()
    assert prompts(planned(batcher)) == [(2, 0, 10)]


def test_finish_releases_a_waiting_or_running_sequence_at_once() -> None:
    """Continuous: whoever is finished is released alone, its blocks are free."""
    pool = BlockPool(100, 16)
    batcher = Continuous(1, 64).batcher(pool)
    sequences = [Sequence(serial, 10, 5) for serial in range(2)]
    for each in sequences:
        batcher.add(each, 0.0)
    step(batcher)

    assert batcher.finish(sequences[1]) == [sequences[1]]
    assert batcher.finish(sequences[0]) == [sequences[0]]
    assert pool.free == 100
    assert list(batcher.unreleased()) == []


def test_what_can_never_fit_is_refused_when_it_comes() -> None:
    """Prompt and output above the whole pool: ``add`` says no."""
    batcher = Continuous(2, 100).batcher(BlockPool(3, 16))

    assert not batcher.add(Sequence(0, 40, 9), 0.0)


def test_a_static_batch_reads_of_each_row_what_lies_in_the_window() -> None:
    """A window of 20: 11 of one row and 20 of the other; then 12, and still the ended row's 20."""
    batcher = Static(2).batcher(BlockPool(None, 16), 20)
    for serial, (prompt, output) in enumerate(((10, 30), (30, 2))):
        batcher.add(Sequence(serial, prompt, output), 0.0)
    step(batcher)
    second, third = step(batcher)[0], step(batcher)[0]

    assert (second.context_tokens, second.windowed_tokens, second.windowed_growth) == (42, 31, 1)
    assert (third.context_tokens, third.windowed_tokens, third.windowed_growth) == (43, 32, 1)
    assert third.repeat == 9  # 11 tokens are there: 20 after nine more
    batcher.commit(planned(batcher), 8)
    full = planned(batcher)
    assert (full.windowed_tokens, full.windowed_growth) == (40, 0)


def test_a_step_repeats_until_the_first_end() -> None:
    """Two decoding sequences with 4 and 9 tokens to go: four equal steps."""
    batcher = filled(Continuous(2, 100), (10, 5), (10, 10))
    step(batcher)

    assert planned(batcher).repeat == 4


def test_a_step_repeats_only_while_blocks_last() -> None:
    """15 tokens in a block of 16, no other block free: one more token fits."""
    batcher = filled(Continuous(1, 100), (15, 17), blocks=2)
    held = Sequence(9, 1, 1)
    batcher.pool.admit(held, 1)  # type: ignore[attr-defined]
    step(batcher)

    assert planned(batcher).repeat == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Static(0),
        lambda: Dynamic(1, -1.0),
        lambda: Dynamic(1, float("nan")),
        lambda: Continuous(0),
        lambda: Continuous(8, 0),
        lambda: Continuous(16, 8),
    ],
)
def test_limits_that_cannot_work_are_refused(make: object) -> None:
    """Zero, negative, NaN, or a budget below the number of slots: one clear error."""
    with pytest.raises(InputError):
        make()  # type: ignore[operator]
