"""What one round did and how long its parts took; a run's rounds as the step records that every run writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from servewise.records.columns import StepColumns


class Round(NamedTuple):
    """A draft and its verification for ``lanes`` sequences, or (``prompt_tokens`` > 0) the prefill of new ones.

    ``k`` was asked for, ``offered`` tokens were drafted in all and ``emitted`` came out. ``kv_tokens``: context summed
    at the start. Seconds: ``start_s`` from the run's start, ``draft_s`` and ``target_s`` for their parts, and
    ``waited_s`` that threads waited for a core meanwhile, summed (0 where nobody tells): other programs' doing.
    """

    start_s: float
    draft_s: float
    target_s: float
    lanes: int
    k: int
    offered: int
    emitted: int
    prompt_tokens: int
    kv_tokens: int
    waited_s: float = 0.0

    @property
    def seconds(self) -> float:
        """Draft and target together."""
        return self.draft_s + self.target_s


def step_columns(rounds: Iterable[Round]) -> StepColumns:
    """Step records, one row a round.

    A verification is ``lanes`` decoding sequences; its drafted tokens count as ``prefill_tokens``, since the target
    computes them as it does a prompt's: several new tokens of a sequence in one pass. ``active`` is the sequences that
    got tokens, not how many.
    """
    steps = StepColumns()
    for each in rounds:
        steps.start_s.append(each.start_s)
        steps.seconds.append(each.seconds)
        steps.steps.append(1)
        steps.decode_sequences.append(0 if each.prompt_tokens else each.lanes)
        steps.prefill_tokens.append(each.prompt_tokens or each.offered)
        steps.running.append(each.lanes)
        steps.waiting.append(0)
        steps.kv_tokens.append(each.kv_tokens)
        steps.active.append(each.lanes)
    return steps
