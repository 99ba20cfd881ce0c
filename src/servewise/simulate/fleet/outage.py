"""Failures at given times, and what becomes of the requests that they hit."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from servewise.batching.positive import positive
from servewise.errors import InputError
from servewise.simulate.timed import UNSET, TimedSequence
from servewise.workload.request import Request

RULES = ("retry", "continue", "fail")


@dataclass(frozen=True, slots=True)
class Outage:
    """Replica ``number`` dies at ``at_s`` and is up again at ``back_s`` (infinity: never), its cache empty."""

    number: int
    at_s: float
    back_s: float = inf

    def __post_init__(self) -> None:
        """Refuse an end that is not after the beginning."""
        positive("the time of a failure", self.at_s, zero=True)
        if not self.back_s > self.at_s:
            raise InputError(f"the failure at {self.at_s:g} s ends at {self.back_s:g} s", hint="the end comes after")


def again(lost: TimedSequence, at_s: float, *, kept_tokens: int = 0) -> TimedSequence:
    """The request of ``lost`` to be sent to another server at ``at_s``.

    The client keeps what it has: the first token that it saw stays its first. ``kept_tokens`` 0: the answer is computed
    anew from the prompt, and the tokens that were streamed before are not sent again. Above 0: the prompt and so many
    tokens of the answer are computed as one prompt, and the answer goes on.

    From here to its next admission it is away; what the dead server had done stays in its account.
    """
    found = TimedSequence(_request_of(lost))
    for name in ("admitted_s", "first_token_s", "left_s", "prefill_s", "preempted_s", "transfer_s"):
        setattr(found, name, getattr(lost, name))
    found.preemptions, found.first_cached_tokens = lost.preemptions, lost.first_cached_tokens
    if lost.prefill_from_s is not UNSET:
        found.prefill_s += at_s - lost.prefill_from_s
    if lost.admitted_s is not UNSET and lost.left_s is UNSET:
        found.left_s = at_s
    found.generated = kept_tokens
    found.target_tokens += kept_tokens
    return found


def _request_of(sequence: TimedSequence) -> Request:
    return Request(
        sequence.serial,
        sequence.arrival_s,
        sequence.prompt_tokens,
        sequence.output_tokens,
        sequence.block_hashes,
        sequence.priority,
        sequence.answer_hashed,
    )
