"""llama.cpp's server rules (tools/server/server-context.cpp), each as a schedule worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.batching.driving import filled, planned, serials, step, steps

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import LlamaCpp
from servewise.batching.sequence import Sequence
from servewise.errors import InputError

SERVER = LlamaCpp(n_parallel=2, n_batch=20)


def test_generating_slots_add_their_tokens_and_prompts_fill_the_batch() -> None:
    """n_batch 20: a prompt of 8 and 12 of 30; then 1 token and the other 18."""
    batcher = filled(SERVER, (8, 9), (30, 9))

    assert steps(batcher, 2) == [(0, [(0, 8), (1, 12)]), (1, [(1, 18)])]


def test_a_request_waits_for_a_slot() -> None:
    """Two slots: the third starts in the step after the first has ended."""
    batcher = filled(SERVER, (8, 3), (8, 9), (8, 9))
    batches = [step(batcher)[0] for _ in range(4)]

    assert [serials(batch.admitted) for batch in batches] == [[0, 1], [], [], [2]]


def test_without_continuous_batching_prompts_wait_until_nobody_generates() -> None:
    """cont_batching off, three slots: who comes while another generates starts after its end."""
    batcher = filled(replace(SERVER, cont_batching=False, n_parallel=3), (8, 3))
    step(batcher)
    batcher.add(Sequence(1, 8, 3), 0.0)

    assert steps(batcher, 3) == [(1, []), (1, []), (0, [(1, 8)])]


def test_each_slot_has_its_part_of_the_cache_unless_it_is_unified() -> None:
    """Eight blocks, two slots: 64 tokens each, or 128 for whoever comes."""
    for unified, longest in ((False, 64), (True, 128)):
        batcher = replace(SERVER, kv_unified=unified).batcher(BlockPool(8, 16))

        assert batcher.add(Sequence(0, longest - 9, 9), 0.0)
        assert not batcher.add(Sequence(1, longest - 9, 10), 0.0)


def test_slots_of_their_own_never_preempt() -> None:
    """Both slots full to the last token: nobody goes back."""
    batcher = filled(replace(SERVER, kv_unified=False), (16, 48), (16, 48), blocks=8)
    while (batch := batcher.plan(0.0)) is not None:
        assert not batch.preempted
        batcher.commit(batch, 1)


def test_a_full_unified_cache_sends_the_youngest_back() -> None:
    """Where llama.cpp ends every request with an error; the records show it as a preemption."""
    batcher = filled(SERVER, (16, 40), (4, 40), blocks=4)
    preempted = []
    while (batch := batcher.plan(0.0)) is not None:
        preempted += serials(batch.preempted)
        batcher.commit(batch, 1)

    assert preempted == [1]


@pytest.mark.parametrize(
    "make", [lambda: replace(SERVER, n_parallel=0), lambda: replace(SERVER, n_batch=1), lambda: LlamaCpp(n_ubatch=0)]
)
def test_what_cannot_work_is_refused(make: Callable[[], LlamaCpp]) -> None:
    """Limits below one, and more slots than a batch has tokens."""
    with pytest.raises(InputError):
        make()


def test_it_says_what_it_is() -> None:
    """The settings that change decisions are in its words."""
    assert SERVER.describe == "llama.cpp, 2 slots, 20 tokens a step, unified KV cache, prompt cache"
    assert planned(filled(LlamaCpp(), (10, 2))).decodes == 0
