"""Driving a policy by hand in tests."""

from __future__ import annotations

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Policy
from servewise.batching.sequence import Sequence


def planned(batcher: Batcher, now_s: float = 0.0) -> Batch:
    """The next step, which must exist."""
    batch = batcher.plan(now_s)
    assert batch is not None
    return batch


def step(batcher: Batcher) -> tuple[Batch, list[int]]:
    """Plan and run one step; the batch and the serials of those released."""
    batch = planned(batcher)
    return batch, [each.serial for each in batcher.commit(batch, 1)]


def steps(batcher: Batcher, count: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """The next ``count`` steps: decoding rows, and (serial, new tokens) of each chunk."""
    found = []
    for _ in range(count):
        batch, _ = step(batcher)
        found.append((batch.decodes, prompts(batch)))
    return found


def prompts(batch: Batch) -> list[tuple[int, int]]:
    """(serial, new tokens) of the step's chunks."""
    return [(chunk.sequence.serial, chunk.new_tokens) for chunk in batch.chunks]


def serials(sequences: tuple[Sequence, ...]) -> list[int]:
    """Their serials."""
    return [each.serial for each in sequences]


def filled(
    policy: Policy,
    *lengths: tuple[int, int],
    blocks: int | None = None,
    block_tokens: int = 16,
    priorities: tuple[int, ...] = (),
) -> Batcher:
    """A policy with one waiting sequence for each (prompt, output)."""
    batcher = policy.batcher(BlockPool(blocks, block_tokens))
    for serial, (prompt, output) in enumerate(lengths):
        sequence = Sequence(serial, prompt, output)
        sequence.priority = priorities[serial] if priorities else 0
        assert batcher.add(sequence, 0.0)
    return batcher
