"""A sequence with the times that its record needs."""

from __future__ import annotations

from math import nan

from servewise.batching.sequence import Sequence
from servewise.workload.request import Request

UNSET = nan  # this very object marks a time that has not come, so that one comparison by identity tells


class TimedSequence(Sequence):
    """A request in simulation.

    Where its time goes [s]: it waits to its first admission, then is in prefill (``prefill_s``, recomputation after a
    preemption included), decodes, or is away: preempted (``preempted_s``, from the preemption to the next admission)
    or between two servers (``transfer_s``, from the end of its prefill to its admission at the other one).
    """

    admitted_s = UNSET
    first_token_s = UNSET
    prefill_from_s = UNSET  # since when it has been in prefill
    left_s = UNSET  # since when it has been away
    prefill_s = 0.0
    preempted_s = 0.0
    transfer_s = 0.0
    transferring = False  # away between two servers, not preempted

    def __init__(self, request: Request) -> None:
        (
            self.serial,
            self.arrival_s,
            self.prompt_tokens,
            self.output_tokens,
            self.block_hashes,
            self.priority,
            answer,
        ) = request
        if answer:
            self.answer_hashed = True
        self.target_tokens = self.prompt_tokens

    def away(self, until_s: float) -> None:
        """It is back at ``until_s``: count the time since it left."""
        if self.transferring:
            self.transfer_s += until_s - self.left_s
            self.transferring = False
        else:
            self.preempted_s += until_s - self.left_s
        self.left_s = UNSET
