"""Who has to go back."""

from __future__ import annotations

from collections.abc import Callable

from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.sequence import Sequence

Victim = Callable[[dict[int, Sequence], DecodeGroup], Sequence]


def youngest(running: dict[int, Sequence], group: DecodeGroup) -> Sequence:  # noqa: ARG001 - the victims' seam
    """Who was admitted last: vLLM's fcfs (``self.running.pop()``), so the oldest always moves on."""
    return next(reversed(running.values()))


def lowest_priority(running: dict[int, Sequence], group: DecodeGroup) -> Sequence:  # noqa: ARG001
    """The highest number, equals the latest to come: vLLM's ``scheduling_policy=priority``."""
    return max(running.values(), key=lambda each: (each.priority, each.serial))


def fewest_generated(running: dict[int, Sequence], group: DecodeGroup) -> Sequence:
    """The decoding one with the fewest tokens made, equals the longest prompt, then the last in the batch.

    SGLang's ``retract_decode`` (managers/schedule_batch.py, 0.5.6). It never retracts its last decoding sequence; here
    that one stays as long as a prompt under way can go instead, so that there always is one that moves on.
    """
    decoding = [each for each in reversed(running.values()) if each.join]
    if len(decoding) < 2 and len(running) > len(decoding):
        return next(each for each in reversed(running.values()) if not each.join)
    return min(decoding, key=lambda each: (group.generated(each), -each.prompt_tokens))
