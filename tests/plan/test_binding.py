"""What a run waited for, told apart by runs in which only one thing can be short."""

from __future__ import annotations

import pytest
from tests.plan.made import FlatStep, server

from servewise.batching.policies import Continuous, Policy, Static
from servewise.plan.binding import Binding, binding_of
from servewise.workload.request import Request


def found(policy: Policy, *, blocks: int = 100_000, prompt: int = 100, output: int = 20) -> Binding:
    """What 200 requests that all come at once wait for."""
    at_work = server(FlatStep(1.0), policy, blocks)
    return binding_of(at_work, at_work.run([Request(i, 0.0, prompt, output) for i in range(200)]))


def shares(binding: Binding) -> tuple[float, float, float]:
    """(memory, slots, tokens)."""
    return (binding.waits_for_memory, binding.waits_for_slots, binding.waits_for_tokens)


def test_few_slots() -> None:
    """Blocks and tokens in plenty, four slots: all waiting is for slots."""
    memory, slots, tokens = shares(found(Continuous(4, 100_000)))

    assert slots > 0.9
    assert memory == tokens == 0.0


def test_few_tokens_a_step() -> None:
    """Blocks and slots in plenty, 150 tokens a step: all waiting is for the step's tokens."""
    memory, slots, tokens = shares(found(Continuous(150, 150), output=2))

    assert tokens > 0.9
    assert memory == slots == 0.0


def test_few_blocks() -> None:
    """Slots and tokens in plenty, blocks for some ten requests: nearly all waiting is for memory."""
    memory, slots, _ = shares(found(Continuous(256, 100_000), blocks=80))

    assert memory > 0.9
    assert slots == 0.0


@pytest.mark.parametrize("policy", [Static(8), Continuous(8, 100_000, chunked_prefill=False)])
def test_a_batch_that_runs_to_its_end_is_no_want_of_memory(policy: Policy) -> None:
    """Who waits for a static batch, or for a slot of whole-prompt batching, does not wait for blocks."""
    assert found(policy).waits_for_memory == 0.0
