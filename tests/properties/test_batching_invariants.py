"""No block is lost or shared wrongly, no token is made twice, and every sequence ends, under every policy."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import budget_of, continuous, presets

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.batching.sequence import Sequence

HASH_TOKENS, BLOCK_TOKENS = 32, 16

policies = (
    continuous
    | presets
    | presets
    | st.builds(Static, st.integers(1, 5))
    | st.builds(Dynamic, st.integers(1, 5), st.just(0.0))
)


@st.composite
def sequence_lists(draw: st.DrawFn) -> list[Sequence]:
    """Sequences that share prefixes by family."""
    out = []
    for serial in range(draw(st.integers(1, 25))):
        prompt = draw(st.integers(1, 150))
        family, own = draw(st.integers(0, 2)), draw(st.integers(0, 4))
        hashes = tuple(
            1000 * family + depth if depth < own else 10_000 * (serial + 1) + depth
            for depth in range(prompt // HASH_TOKENS)
        )
        sequence = Sequence(serial, prompt, draw(st.integers(1, 60)), hashes)
        sequence.priority = draw(st.integers(0, 2))
        out.append(sequence)
    return out


def blocks_held(batcher: Batcher, pool: BlockPool) -> int:
    """Blocks in use, counted from the sequences themselves: private ones by length, shared ones once each."""
    private = 0
    shared: set[int] = set()
    for sequence in batcher.unreleased():
        shared.update(sequence.block_hashes[: sequence.shared])
        if sequence.join and batcher.group.grows:
            generated = sequence.output_tokens - (sequence.end_step - batcher.group.step)
            private += pool.private_blocks(sequence, sequence.prompt_tokens + generated - 1)
        else:
            private += sequence.blocks
    for sequence in getattr(batcher, "ending", ()):
        shared.update(sequence.block_hashes[: sequence.shared])
        tokens = sequence.computed_tokens
        private += pool.private_blocks(sequence, tokens) if batcher.group.grows else sequence.blocks
    return private + len(shared) * (HASH_TOKENS // BLOCK_TOKENS)


def check_batch(batch: Batch, policy: Policy) -> None:
    """A step stays within the policy's limits and gives every chunk something to do."""
    assert batch.running <= policy.slots
    assert batch.active <= batch.running
    assert batch.repeat >= 1
    assert all(chunk.new_tokens >= 1 for chunk in batch.chunks)
    assert len({chunk.sequence.serial for chunk in batch.chunks}) == len(batch.chunks)
    budget = budget_of(policy)
    if budget is not None:
        assert batch.decodes + sum(chunk.new_tokens for chunk in batch.chunks) <= budget
    if isinstance(policy, Continuous):
        tokens = batch.decodes + sum(chunk.new_tokens for chunk in batch.chunks)
        lone_prompt = not policy.chunked_prefill and len(batch.chunks) == 1
        assert tokens <= max(policy.max_batched_tokens, policy.max_sequences) or lone_prompt


def drive(sequences: list[Sequence], policy: Policy, blocks: int | None, jumps: list[int]) -> list[Sequence]:
    """Run all sequences to their ends, checking the pool after every step."""
    pool = BlockPool(blocks, BLOCK_TOKENS, HASH_TOKENS if getattr(policy, "prefix_cache", False) else None)
    total = pool.free
    batcher = policy.batcher(pool)
    ended: list[Sequence] = []
    expected = [each for each in sequences if batcher.add(each, 0.0)]
    batcher.close()
    steps = 0
    while (batch := batcher.plan(0.0)) is not None:
        check_batch(batch, policy)
        ended += batcher.commit(batch, min(batch.repeat, jumps[steps % len(jumps)]))
        held = blocks_held(batcher, pool)
        assert pool.free + pool.kept_blocks + held == total
        assert pool.free >= 0
        assert pool.kept_blocks >= 0
        steps += 1
        assert steps < 100_000, "livelock"
    assert pool.free + pool.kept_blocks == total
    assert sorted(each.serial for each in ended) == [each.serial for each in expected]
    return ended


@settings(max_examples=400, deadline=None)
@given(sequence_lists(), policies, st.none() | st.integers(4, 40), st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_blocks_are_conserved_and_every_sequence_ends(
    sequences: list[Sequence], policy: Policy, blocks: int | None, jumps: list[int]
) -> None:
    """Free, kept and held blocks add up after every step, and every admitted sequence makes each of its tokens once."""
    for sequence in drive(sequences, policy, blocks, jumps):
        assert sequence.generated == sequence.output_tokens
        assert sequence.computed_tokens == sequence.prompt_tokens + sequence.output_tokens - 1
        assert sequence.blocks == sequence.shared == 0


@settings(max_examples=100, deadline=None)
@given(sequence_lists(), continuous | presets, st.integers(15, 40), st.data())
def test_sequences_finished_early_leave_nothing_behind(
    sequences: list[Sequence], policy: Policy, blocks: int, data: st.DataObject
) -> None:
    """Sequences taken out anywhere (waiting, in their prompt, decoding) give all their blocks back."""
    pool = BlockPool(blocks, BLOCK_TOKENS, HASH_TOKENS if getattr(policy, "prefix_cache", False) else None)
    batcher = policy.batcher(pool)
    for each in sequences:
        batcher.add(each, 0.0)
    for _ in range(300):
        here = list(batcher.unreleased())
        pick = data.draw(st.integers(0, 2 * len(here)))
        if pick < len(here):
            batcher.finish(here[pick])
        batch = batcher.plan(0.0)
        if batch is None:
            break
        batcher.commit(batch, 1)
    for each in list(batcher.unreleased()):
        batcher.finish(each)
    assert batcher.plan(0.0) is None

    assert pool.free + pool.kept_blocks == blocks
    assert batcher.group.size == batcher.group.context_tokens == 0
