"""Step records as the shapes that estimators time: prompt chunks are put together again from the requests' records.

A step's record holds how many prompt tokens it computed, not whose. Policies serve prompts in order of admission, so
each step's tokens are dealt out to the prompts that were admitted by then, oldest first; a step whose count of
finished prompts then differs from what was recorded (after a preemption, say) is left out and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from servewise.metrics.latency import floats, ints
from servewise.records.columns import RequestColumns, StepColumns
from servewise.steptime.shape import StepShape, add_chunk

SLACK_S = 1e-6  # times are rounded on the way through files


@dataclass(frozen=True, slots=True)
class ObservedStep:
    """``count`` equal steps of ``shape`` (the middle one of a run of them) that took ``seconds`` each."""

    shape: StepShape
    seconds: float
    count: int
    start_s: float


@dataclass(slots=True)
class _Prompt:
    admitted_s: float
    computed: int
    tokens: int


def observed_steps(
    requests: RequestColumns, steps: StepColumns, window_tokens: int | None = None
) -> tuple[list[ObservedStep], int]:
    """The steps that can be timed, in order, and how many could not be put together."""
    upcoming = deque(_prompts(requests))
    prefilling: deque[_Prompt] = deque()
    found: list[ObservedStep] = []
    active = ints(steps.active if len(steps.active) == len(steps) else steps.decode_sequences)
    columns = (steps.start_s, steps.seconds, steps.steps, steps.decode_sequences, steps.prefill_tokens, steps.kv_tokens)
    for start_s, seconds, count, decodes, tokens, context, gave in zip(*columns, active.tolist(), strict=True):
        while upcoming and upcoming[0].admitted_s <= start_s + seconds + SLACK_S:
            prefilling.append(upcoming.popleft())
        shape = _decoding(decodes, context + gave * (count - 1) // 2, window_tokens)
        known = True
        if tokens:
            shape, ended, left = _dealt(shape, prefilling, tokens, window_tokens)
            known = not left and (len(steps.active) != len(steps) or ended == gave - decodes)
        if known and seconds > 0 and shape.tokens:
            found.append(ObservedStep(shape, seconds / count, count, start_s))
    return found, len(steps) - len(found)


def _prompts(requests: RequestColumns) -> list[_Prompt]:
    """The admitted prompts in order of admission; a cached one computes at least its last token."""
    admitted = floats(requests.admitted_s)
    order = np.lexsort((ints(requests.id), admitted))
    columns = (requests.admitted_s, requests.cached_tokens, requests.prompt_tokens)
    rows = list(zip(*columns, strict=True))
    return [_Prompt(*rows[each]) for each in order.tolist() if isfinite(admitted[each])]


def _decoding(sequences: int, context: int, window_tokens: int | None) -> StepShape:
    if not sequences:
        return StepShape()
    windowed = min(context, sequences * window_tokens) if window_tokens else context
    return StepShape(sequences, context, windowed, logit_rows=sequences)


def _dealt(
    shape: StepShape, prefilling: deque[_Prompt], tokens: int, window_tokens: int | None
) -> tuple[StepShape, int, int]:
    """``shape`` with ``tokens`` prompt tokens of the oldest prompts, how many of these ended, and what is left over."""
    ended = 0
    while tokens and prefilling:
        prompt = prefilling[0]
        new = min(tokens, prompt.tokens - prompt.computed)
        ends = prompt.computed + new == prompt.tokens
        if new > 0:
            shape = add_chunk(shape, prompt.computed, new, window_tokens, ends_prompt=ends)
        prompt.computed += new
        tokens -= new
        if ends or new <= 0:
            prefilling.popleft()
            ended += ends
    return shape, ended, tokens


def thinned(steps: Sequence[ObservedStep], most: int) -> list[ObservedStep]:
    """At most ``most`` of ``steps``, every so-many-th of those with prompts and of those without.

    Steps with prompts are rarer and tell more, so they may take half of the room.
    """
    mixed = [place for place, each in enumerate(steps) if each.shape.prefill_tokens]
    plain = [place for place, each in enumerate(steps) if not each.shape.prefill_tokens]
    room = min(len(mixed), max(most // 2, most - len(plain)))
    kept = {places[i * len(places) // n] for places, n in _shares(mixed, plain, room, most) for i in range(n)}
    return [steps[place] for place in sorted(kept)]


def _shares(mixed: list[int], plain: list[int], room: int, most: int) -> list[tuple[list[int], int]]:
    return [(mixed, room), (plain, min(len(plain), most - room))]
