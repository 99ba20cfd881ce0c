"""Promises of order, and no livelock, for every preset and combination of parts."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import presets, vllm

from servewise.batching.batch import Batch
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous, LlamaCpp, Policy, Sglang, TrtLlm, Vllm
from servewise.batching.sequence import Sequence

BLOCK_TOKENS = 16
lengths = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 40), st.integers(0, 2)), min_size=1, max_size=14)
plain = st.builds(
    Continuous,
    max_sequences=st.integers(1, 8),
    max_batched_tokens=st.integers(8, 200),
    chunked_prefill=st.booleans(),
    reserve_output=st.booleans(),
    order=st.sampled_from(["fcfs", "priority", "shortest_prompt", "shortest_output"]),
    watermark=st.sampled_from([0.0, 0.2]),
    swap_blocks=st.sampled_from([0, 10]),
)


def sequences_of(drawn: list[tuple[int, int, int]]) -> list[Sequence]:
    """One sequence for each (prompt, output, priority)."""
    found = []
    for serial, (prompt, output, priority) in enumerate(drawn):
        sequence = Sequence(serial, prompt, output)
        sequence.priority = priority
        found.append(sequence)
    return found


def fcfs(policy: Policy) -> bool:
    """Whether the policy promises first admissions in order of arrival."""
    match policy:
        case Vllm():
            return policy.scheduling_policy == "fcfs"
        case Sglang():
            return policy.schedule_policy == "fcfs"
        case Continuous():
            return policy.order == "fcfs"
        case _:
            return isinstance(policy, TrtLlm | LlamaCpp)


def run(policy: Policy, sequences: list[Sequence], blocks: int) -> tuple[list[Batch], list[Sequence], list[int]]:
    """Every step one by one; the batches, who ended, and who was first admitted, in order."""
    batcher = policy.batcher(BlockPool(blocks, BLOCK_TOKENS))
    expected = [each.serial for each in sequences if batcher.add(each, 0.0)]
    batches, ended, first = [], [], []
    while (batch := batcher.plan(0.0)) is not None:
        first += [each.serial for each in batch.admitted if each.serial not in first]
        batches.append(batch)
        ended += batcher.commit(batch, 1)
        assert len(batches) < 20_000, "livelock"
    assert sorted(each.serial for each in ended) == expected
    return batches, ended, first


@settings(max_examples=300, deadline=None)
@given(lengths, presets | plain, st.integers(0, 2))
def test_a_pool_as_small_as_its_longest_request_brings_every_request_to_its_end(
    drawn: list[tuple[int, int, int]], policy: Policy, more: int
) -> None:
    """No livelock: whatever the pool can hold alone ends, with every token made once, though the pool holds no more."""
    blocks = max(-(-(prompt + output) // BLOCK_TOKENS) for prompt, output, _ in drawn) + more
    _, ended, first = run(policy, sequences_of(drawn), blocks)

    assert all(each.generated == each.output_tokens and each.stored_tokens == 0 for each in ended)
    if fcfs(policy):
        assert first == sorted(first)


by_priority = vllm.filter(lambda policy: policy.scheduling_policy == "priority") | plain.filter(
    lambda policy: policy.order == "priority"
)


@settings(max_examples=150, deadline=None)
@given(lengths, by_priority, st.integers(6, 20))
def test_priorities_are_respected(drawn: list[tuple[int, int, int]], policy: Policy, blocks: int) -> None:
    """First admissions go by (priority, arrival); whoever goes back ranks behind all who stay."""
    sequences = sequences_of(drawn)
    ranks = {each.serial: (each.priority, each.serial) for each in sequences}
    batcher = policy.batcher(BlockPool(blocks, BLOCK_TOKENS))
    for each in sequences:
        batcher.add(each, 0.0)
    first: list[int] = []
    running: set[int] = set()
    while (batch := batcher.plan(0.0)) is not None:
        gone = {each.serial for each in batch.preempted}
        running -= gone
        assert not gone or not running or min(ranks[each] for each in gone) > max(ranks[each] for each in running)
        running |= {each.serial for each in batch.admitted}
        first += [each.serial for each in batch.admitted if each.serial not in first]
        running -= {each.serial for each in batcher.commit(batch, 1)}

    assert [ranks[each] for each in first] == sorted(ranks[each] for each in first)


@settings(max_examples=150, deadline=None)
@given(lengths, vllm | plain, st.integers(6, 20))
def test_what_is_swapped_out_comes_back_exactly(
    drawn: list[tuple[int, int, int]], policy: Vllm | Continuous, blocks: int
) -> None:
    """With room on the host for all: what moves out moves in, and whoever decoded computes its prompt once."""
    swapping = {"preemption_mode": "swap"} if isinstance(policy, Vllm) else {}
    policy = replace(policy, swap_blocks=1000, **swapping)  # type: ignore[arg-type]
    batcher = policy.batcher(BlockPool(blocks, BLOCK_TOKENS))
    sequences = [each for each in sequences_of(drawn) if batcher.add(each, 0.0)]
    moved = stored = 0
    in_prompt: set[int] = set()
    computed = dict.fromkeys((each.serial for each in sequences), 0)
    while (batch := batcher.plan(0.0)) is not None:
        moved += batch.moved_tokens
        stored += sum(each.stored_tokens for each in batch.preempted)
        in_prompt |= {each.serial for each in batch.preempted if not each.stored_tokens}
        for chunk in batch.chunks:
            computed[chunk.sequence.serial] += chunk.new_tokens
        batcher.commit(batch, 1)

    assert moved == 2 * stored
    for each in sequences:
        if each.serial not in in_prompt:
            assert computed[each.serial] == each.prompt_tokens
