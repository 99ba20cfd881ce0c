"""Who has to go back, chosen among sequences that are put there by hand."""

from __future__ import annotations

from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.retreat.victims import fewest_generated, lowest_priority, youngest
from servewise.batching.sequence import Sequence


def made(serial: int, prompt: int, generated: int, group: DecodeGroup | None, priority: int = 0) -> Sequence:
    """A sequence of 50 tokens to come that has ``generated`` of them, decoding in ``group`` or in its prompt."""
    sequence = Sequence(serial, prompt, 50)
    sequence.generated, sequence.priority = generated, priority
    if group is not None:
        sequence.computed_tokens = prompt + generated - 1
        group.join(sequence)
    return sequence


def running(*sequences: Sequence) -> dict[int, Sequence]:
    """In that order of admission."""
    return {each.serial: each for each in sequences}


def test_the_youngest_is_who_was_admitted_last() -> None:
    """Not who came last."""
    group = DecodeGroup(16, grows=True)

    assert youngest(running(made(4, 9, 0, None), made(2, 9, 0, None)), group).serial == 2


def test_the_lowest_priority_is_the_highest_number_and_then_the_latest() -> None:
    """Of priorities 1, 2, 2 the later of the twos."""
    group = DecodeGroup(16, grows=True)
    found = running(made(9, 9, 0, None, 1), made(5, 9, 0, None, 2), made(3, 9, 0, None, 2))

    assert lowest_priority(found, group).serial == 5


def test_sglang_retracts_decoding_ones_before_a_prompt_under_way() -> None:
    """Two decode and a prompt is under way: the one with fewer tokens made goes, not the prompt."""
    group = DecodeGroup(16, grows=True)
    found = running(made(0, 9, 7, group), made(1, 9, 3, group), made(2, 90, 0, None))

    assert fewest_generated(found, group).serial == 1


def test_sglang_keeps_its_last_decoding_one_while_a_prompt_can_go() -> None:
    """One decodes, two prompts are under way: the prompt admitted last goes; with no prompt the decoding one."""
    group = DecodeGroup(16, grows=True)
    decoding = made(0, 9, 7, group)

    assert fewest_generated(running(made(1, 90, 0, None), decoding, made(2, 90, 0, None)), group).serial == 2
    assert fewest_generated(running(made(2, 90, 0, None), made(1, 90, 0, None), decoding), group).serial == 1
    assert fewest_generated(running(decoding), group).serial == 0


def test_of_equals_sglang_retracts_the_longest_prompt_and_then_the_last() -> None:
    """All have made 3: prompts of 9, 12, 12: the second of the twelves."""
    group = DecodeGroup(16, grows=True)
    found = running(made(0, 12, 3, group), made(1, 9, 3, group), made(2, 12, 3, group))

    assert fewest_generated(found, group).serial == 2
