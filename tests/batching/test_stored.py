"""Sequences whose KV lies elsewhere: they take blocks, move in, and decode at once."""

from __future__ import annotations

from functools import partial

import pytest

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous, LlamaCpp, Sglang, TrtLlm, Vllm
from servewise.batching.sequence import Sequence
from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.draft_length import FixedLength, UntilBatch
from servewise.batching.speculative.policy import Speculative


def stored(serial: int, prompt: int, output: int, hashes: tuple[int, ...] = ()) -> Sequence:
    """A sequence whose prompt was computed on a prefill server, with its first token."""
    sequence = Sequence(serial, prompt, output, hashes)
    sequence.generated = 1
    sequence.stored_tokens = prompt
    return sequence


def planned(batcher: Batcher) -> Batch:
    """The next step, which must exist."""
    batch = batcher.plan(0.0)
    assert batch is not None
    return batch


@pytest.mark.parametrize("chunked", [True, False])
def test_it_decodes_in_the_step_that_admits_it(chunked: bool) -> None:
    """40 tokens stored, 3 to make, 1 made: two steps of one row that read 41 and 42 KV tokens, and no prompt chunk."""
    pool = BlockPool(3, 16)
    batcher = Continuous(2, 100, chunked_prefill=chunked).batcher(pool)
    sequence = stored(0, 40, 3)
    assert batcher.add(sequence, 0.0)
    first = planned(batcher)

    assert (first.decodes, first.chunks, first.admitted, first.moved_tokens) == (1, (), (sequence,), 40)
    assert (first.context_tokens, first.repeat, pool.free) == (41, 1, 0)
    assert batcher.commit(first, 1) == []
    second = planned(batcher)
    assert (second.decodes, second.context_tokens, second.moved_tokens) == (1, 42, 0)
    assert batcher.commit(second, 1) == [sequence]
    assert (sequence.generated, sequence.computed_tokens, pool.free) == (3, 42, 3)


def test_it_waits_until_the_block_of_its_next_token_is_free_too() -> None:
    """Two full blocks stored: with two free blocks it would have to go back at once, so it waits for three."""
    for blocks, admitted in ((4, 0), (5, 1)):
        pool = BlockPool(blocks, 16)
        batcher = Continuous(2, 100).batcher(pool)
        batcher.add(Sequence(0, 16, 16), 0.0)
        batcher.commit(planned(batcher), 1)
        batcher.add(stored(1, 32, 3), 0.0)
        batch = planned(batcher)

        assert (len(batch.admitted), batch.decodes) == (admitted, 1 + admitted)


def test_it_shares_the_step_with_prompt_chunks() -> None:
    """Budget 20: the stored one takes one token of it, the prompt behind it 19."""
    batcher = Continuous(4, 20).batcher(BlockPool(None, 16))
    batcher.add(stored(0, 40, 3), 0.0)
    batcher.add(Sequence(1, 50, 2), 0.0)
    batch = planned(batcher)

    assert (batch.decodes, [chunk.new_tokens for chunk in batch.chunks]) == (1, [19])


def test_all_that_move_in_before_a_step_are_counted() -> None:
    """40 and 30 tokens, or 4 and 3: 70 move, or 7; of 10 tokens a step each row takes one, so a prompt of 8 fits."""
    for chunked, lengths in ((True, (40, 30)), (False, (4, 3))):
        batcher = Vllm(4, 10, enable_chunked_prefill=chunked, async_scheduling=False).batcher(BlockPool(None, 16))
        for serial, length in enumerate(lengths):
            batcher.add(stored(serial, length, 3), 0.0)
        batcher.add(Sequence(2, 8, 2), 0.0)
        batch = planned(batcher)

        assert batch.moved_tokens == sum(lengths)
        assert (batch.decodes, [chunk.new_tokens for chunk in batch.chunks]) == (2, [8])


def test_what_the_prefix_cache_has_does_not_move() -> None:
    """Two of its blocks are in the cache: 40 - 32 tokens move."""
    pool = BlockPool(20, 16, 16)
    batcher = Continuous(2, 100, prefix_cache=True).batcher(pool)
    batcher.add(Sequence(0, 40, 1, (7, 8)), 0.0)
    batcher.commit(planned(batcher), 1)
    batcher.add(stored(1, 40, 3, (7, 8)), 0.0)

    assert planned(batcher).moved_tokens == 8


def test_a_preempted_one_computes_its_tokens_again() -> None:
    """After a preemption by recompute nothing of it is elsewhere: its 17 tokens are a prompt."""
    batcher = Continuous(2, 100).batcher(BlockPool(4, 16))
    for each in (stored(0, 16, 30), stored(1, 16, 30)):
        batcher.add(each, 0.0)
    for _ in range(16):
        batcher.commit(planned(batcher), 1)
    batch = planned(batcher)

    assert [(each.serial, each.target_tokens, each.stored_tokens) for each in batch.preempted] == [(1, 33, 0)]


@pytest.mark.parametrize(("prompt", "output"), [(1, 19), (16, 15), (1, 30)])
def test_sglang_lets_in_what_the_whole_pool_holds(prompt: int, output: int) -> None:
    """Two blocks hold 32 tokens: prompt and output below that run alone, the stored tokens in the first block.

    It waited for ever where blocks for its output were asked for beside the rest of the block that it begins in.
    """
    batcher = Sglang(8, 32, disable_overlap_schedule=True).batcher(BlockPool(2, 16))
    sequence = stored(0, prompt, output)
    assert batcher.add(sequence, 0.0)
    ended: list[Sequence] = []
    while (batch := batcher.plan(0.0)) is not None:
        ended += batcher.commit(batch, 1)

    assert ended == [sequence]


def test_its_drafts_are_of_the_budget_too() -> None:
    """20 tokens a step: beside a prompt of 17 a row of 1 + 3 drafts finds 3 left and waits; beside 16 it runs."""
    for prompt, admitted in ((17, 1), (16, 2)):
        policy = Speculative(Continuous(4, 20), Acceptance((0.5,)), lambda: FixedLength(3))
        batcher = policy.batcher(BlockPool(None, 16))
        batcher.add(Sequence(0, prompt, 5), 0.0)
        batcher.add(stored(1, 40, 9), 0.0)

        assert len(planned(batcher).admitted) == admitted


def test_drafts_of_the_first_row_are_those_of_a_batch_of_one() -> None:
    """Drafts up to one row: 20 tokens a step take a fetched row of 1 + 3 beside a prompt of 16, not of 17."""
    for prompt, admitted in ((17, 1), (16, 2)):
        policy = Speculative(Continuous(4, 20), Acceptance((0.5,)), lambda: UntilBatch(3, 1))
        batcher = policy.batcher(BlockPool(None, 16))
        batcher.add(Sequence(0, prompt, 5), 0.0)
        batcher.add(stored(1, 40, 9), 0.0)

        assert len(planned(batcher).admitted) == admitted


def test_trtllm_lets_it_in_beside_contexts_where_its_row_fits() -> None:
    """100 tokens a step, a context of 68 first: 32 are left for a row of 1 + 31 drafts, and not for one of 1 + 32."""
    for drafts, admitted in ((31, 2), (32, 1)):
        policy = TrtLlm(8, 100, enable_chunked_prefill=True, disable_overlap_scheduler=True)
        batcher = Speculative(policy, Acceptance((0.5,)), partial(FixedLength, drafts)).batcher(BlockPool(None, 16))
        batcher.add(Sequence(0, 68, 5), 0.0)
        batcher.add(stored(1, 40, 50), 0.0)

        assert len(planned(batcher).admitted) == admitted


def test_its_drafts_may_pass_the_budget_alone() -> None:
    """A row of 1 + 30 drafts never finds 20 tokens enough: with nothing else in the step it runs all the same."""
    policy = Speculative(Continuous(4, 20), Acceptance((0.5,)), lambda: FixedLength(30))
    batcher = policy.batcher(BlockPool(None, 16))
    batcher.add(stored(0, 40, 9), 0.0)

    assert planned(batcher).decodes == 1


def test_llamacpp_keeps_it_out_of_a_step_of_prompts() -> None:
    """Without ``cont_batching`` a step has prompts or decodes: one fetched in a prompt's step decodes in the next."""
    batcher = LlamaCpp(4, 100, cont_batching=False).batcher(BlockPool(None, 16))
    batcher.add(stored(0, 40, 9), 0.0)
    batcher.add(Sequence(1, 30, 5), 0.0)
    first = planned(batcher)

    assert (first.decodes, len(first.chunks), len(first.admitted)) == (0, 1, 2)
    batcher.commit(first, 1)
    assert (planned(batcher).decodes, planned(batcher).chunks) == (2, ())
