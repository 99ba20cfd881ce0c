"""Decisions that lag one step (vLLM's async scheduling), each as a schedule worked out by hand."""

from __future__ import annotations

from tests.batching.driving import filled, planned, prompts, serials, step

from servewise.batching.batch import Batcher
from servewise.batching.policies import Vllm
from servewise.batching.sequence import Sequence


def test_the_slot_of_who_ended_is_open_to_who_comes() -> None:
    """Two slots, one ends: whoever comes during the next step may have its slot in the step after, so that is open."""
    batcher = filled(Vllm(2, 100), (10, 2), (10, 30))
    step(batcher)
    _, ended = step(batcher)
    assert ended == [0]
    batch = planned(batcher)

    assert (batch.running, batch.open, batch.repeat) == (1, True, 28)


def test_who_waits_cuts_the_step_that_still_holds_the_slot_of_who_ended() -> None:
    """Two slots, a third waits: the step that was decided before the end runs once, then the third comes in."""
    batcher = filled(Vllm(2, 100), (10, 2), (10, 30), (10, 3))
    step(batcher)
    step(batcher)
    batch, _ = step(batcher)

    assert (batch.repeat, batch.admitted, batch.waiting) == (1, (), 1)
    assert serials(planned(batcher).admitted) == [2]


def test_who_came_while_a_step_ran_is_seen_one_step_later() -> None:
    """It comes after the first step began: the second does not hold it, the third does."""
    batcher = filled(Vllm(2, 100), (10, 9))
    step(batcher)
    batcher.add(Sequence(1, 10, 3), 0.5)
    second, _ = step(batcher)

    assert (prompts(second), second.waiting, second.repeat) == ([], 1, 1)
    assert prompts(planned(batcher)) == [(1, 10)]


def test_who_came_before_the_last_of_several_steps_began_is_seen_by_the_next() -> None:
    """Steps ran at once until 5 s: who came at 4 s is in the next step, who came at 6 s in the one after."""
    batcher = filled(Vllm(3, 100), (10, 9))
    step(batcher)
    for serial, came_s in ((1, 4.0), (2, 6.0)):
        batcher.add(Sequence(serial, 10, 3), came_s)
    batcher.seen_until_s = 5.0  # type: ignore[attr-defined]

    assert prompts(step(batcher)[0]) == [(1, 10)]
    assert prompts(step(batcher)[0]) == [(2, 10)]


def _short(*more: tuple[int, int]) -> Batcher:
    """Four blocks of 16: a prompt of 40 that ends with the second step, one of 15 that then needs a second block."""
    batcher = filled(Vllm(3, 100), (40, 2), (15, 20), *more, blocks=4)
    for _ in range(2):
        _, ended = step(batcher)
    assert ended == [0]
    return batcher


def test_the_last_one_waits_for_the_blocks_of_who_ended_instead_of_going_back() -> None:
    """The blocks of the first are given back at once, as nobody else could; the second decodes on."""
    batch = planned(_short())

    assert (batch.preempted, batch.decodes) == ((), 1)


def test_nobody_is_admitted_in_a_step_that_waited_for_blocks() -> None:
    """A third one of 5 tokens would fit beside, but comes in with the step after, as after a preemption."""
    batcher = _short((5, 3))
    batch, _ = step(batcher)

    assert (batch.decodes, batch.admitted, batch.waiting) == (1, (), 1)
    assert serials(planned(batcher).admitted) == [2]


def test_a_cancelled_newcomer_was_never_there() -> None:
    """Cancelled before it is seen: the others go on as they were."""
    batcher = filled(Vllm(2, 100), (10, 9))
    step(batcher)
    newcomers = [Sequence(serial, 10, 3) for serial in (1, 2)]
    for each in newcomers:
        batcher.add(each, 0.5)

    assert batcher.finish(newcomers[0]) == [newcomers[0]]
    assert [each.serial for each in batcher.unreleased()] == [0, 2]
    step(batcher)
    assert prompts(planned(batcher)) == [(2, 10)]
