"""A group whose members verify drafts, against counting by hand."""

from __future__ import annotations

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous
from servewise.batching.sequence import Sequence
from servewise.batching.speculative.acceptance import Acceptance, Draws
from servewise.batching.speculative.draft_length import FixedLength, UntilBatch
from servewise.batching.speculative.group import SpeculativeGroup
from servewise.batching.speculative.policy import Speculative
from servewise.batching.speculative.tally import Tally


def group(chance: float, k: int, *, window: int | None = None, looks_ahead: bool = False) -> SpeculativeGroup:
    """A group of blocks of 4 tokens that grow."""
    draws = Draws(Acceptance((chance,)))
    return SpeculativeGroup(
        4, grows=True, window_tokens=window, draws=draws, length=FixedLength(k), looks_ahead=looks_ahead
    )


def member(serial: int, prompt: int, output: int) -> Sequence:
    """A sequence whose prompt is computed, its first token made."""
    sequence = Sequence(serial, prompt, output)
    sequence.computed_tokens, sequence.generated = prompt, 1
    return sequence


def planned(batcher: Batcher) -> Batch:
    """The next step, which must exist."""
    batch = batcher.plan(0.0)
    assert batch is not None
    return batch


def test_all_accepted_is_k_plus_one_tokens_a_step_and_exact_at_the_end() -> None:
    """10 tokens, the first from the prompt, K = 3, all accepted: 4, 4, then the one that is left."""
    found, sequence = group(1.0, 3), member(0, 5, 10)
    found.join(sequence)
    made: list[int] = []
    while not made or sequence.generated != 10:
        ended = found.advance(1)
        made.append(sequence.generated)

    assert made == [5, 9, 10]
    assert ended == [sequence]
    assert (found.size, found.context_tokens, sequence.computed_tokens, sequence.join) == (0, 0, 14, 0)
    assert found.tally == Tally(verifications=3, drafted=9, gained=9, accepted=[3, 3, 3])


def test_none_accepted_is_one_token_a_step() -> None:
    """K = 3 and nothing stands: as many steps as tokens."""
    found, sequence = group(0.0, 3), member(0, 5, 4)
    found.join(sequence)

    assert [found.advance(1) for _ in range(3)] == [[], [], [sequence]]


def test_blocks_reserved_and_blocks_taken() -> None:
    """5 tokens in blocks of 4, K = 3: 9 tokens may come, one block more; with drafts behind them 12, still one.

    At 8 tokens one more is a block, four more too, and looking ahead 15 tokens are two.
    """
    for tokens, looks_ahead, reserved in ((5, False, 1), (5, True, 1), (8, False, 1), (8, True, 2)):
        found = group(0.0, 3, looks_ahead=looks_ahead)
        found.join(member(0, tokens, 50))
        assert found.blocks_for_next() == reserved
        assert found.blocks_for(1) == (1 if tokens == 8 else 0)


def test_reserved_blocks_stop_at_the_last_token_stored() -> None:
    """A prompt of 7 and an output of 2 store 8 tokens: two blocks, which are there, whatever K."""
    found = group(1.0, 7, looks_ahead=True)
    found.join(member(0, 7, 2))

    assert found.blocks_for_next() == 0


def test_the_window_holds_what_it_can() -> None:
    """Window 8: 6 and 20 tokens are 14 in it; with K = 3 the first may grow by 2, the other by none."""
    found = group(1.0, 3, window=8)
    found.join(member(0, 6, 50))
    found.join(member(1, 20, 50))

    assert (found.windowed_tokens, found.below_window, found.context_tokens) == (14, 2, 26)
    found.advance(1)
    assert (found.windowed_tokens, found.below_window, found.context_tokens) == (16, 0, 34)


def test_members_that_end_together_leave_by_serial() -> None:
    """Joined 2, 0, 1, all ending now: out come 0, 1, 2."""
    found = group(1.0, 3)
    members = [member(serial, 4, 3) for serial in (2, 0, 1)]
    for each in members:
        found.join(each)

    assert [each.serial for each in found.advance(1)] == [0, 1, 2]


def test_no_drafts_above_a_batch() -> None:
    """K = 4 up to two sequences: three that came drafted once more, then not, and two do again."""
    found = SpeculativeGroup(4, grows=False, draws=Draws(Acceptance((0.0,))), length=UntilBatch(4, 2))
    members = [member(serial, 4, 50) for serial in range(3)]
    for each in members:
        found.join(each)
    before = found.drafted
    found.advance(1)
    above = found.drafted
    found.leave(members[0])

    assert (before, above, found.drafted) == (4, 0, 4)


def test_the_batch_says_what_is_verified() -> None:
    """Two decoding rows with K = 3 take 8 of the token budget of 10; a prompt gets the other 2."""
    policy = Speculative(Continuous(4, 10), Acceptance((0.0,)), lambda: FixedLength(3))
    batcher = policy.batcher(BlockPool(None, 16))
    for serial in range(2):
        batcher.add(Sequence(serial, 4, 9), 0.0)
    batcher.commit(planned(batcher), 1)
    batcher.add(Sequence(2, 30, 9), 0.0)
    batch = planned(batcher)

    assert (batch.decodes, batch.drafted, batch.context_tokens) == (2, 3, 2 * (4 + 1 + 3))
    assert [chunk.new_tokens for chunk in batch.chunks] == [2]


def test_preempted_members_keep_their_tokens_and_give_back_their_blocks() -> None:
    """Five blocks of 4 for two sequences of 16 tokens at last: the younger goes, both end, all blocks are free."""
    pool = BlockPool(5, 4)
    policy = Speculative(Continuous(2, 100), Acceptance((0.6,)), lambda: FixedLength(3), looks_ahead=False)
    batcher = policy.batcher(pool)
    sequences = [Sequence(serial, 6, 10) for serial in range(2)]
    for each in sequences:
        batcher.add(each, 0.0)
    ended: list[Sequence] = []
    while len(ended) < 2:
        ended += batcher.commit(planned(batcher), 1)

    assert sequences[1].preemptions > 0
    assert [each.generated for each in sequences] == [10, 10]
    assert pool.free == 5
