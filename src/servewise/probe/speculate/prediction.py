"""Predicted speed-up by draft length, from acceptance and costs that were measured apart from any speculative run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from servewise.engine.speculative.acceptance import AcceptanceCounts
from servewise.engine.speculative.costs import BatchCosts
from servewise.techniques.speculation import SpeculationRow, batched_speedup, tokens_from_survival


def predicted(counts: Sequence[AcceptanceCounts], costs: BatchCosts) -> list[SpeculationRow]:
    """Every K from 0, by its own counts: tokens a verification, and these x plain step / (draft + verification).

    ``techniques.speculation.batched_speedup`` with the times of each K. Leaves out that a batch's last sequences run
    alone, and that each sequence's last drafts are cut short.
    """
    rows = []
    for k, (draft_s, verify_s) in enumerate(zip(costs.draft_s, costs.verify_s, strict=True)):
        tokens = tokens_from_survival(counts[k].survival())
        draft_step_s = draft_s / k if k else 0.0
        gain = batched_speedup(tokens, k, step_s=costs.verify_s[0], draft_step_s=draft_step_s, verify_s=verify_s)
        rows.append(SpeculationRow(k, tokens, gain))
    return rows


class Turn(NamedTuple):
    """Where a draft length stops paying: between these batches, at ``batch`` by interpolation over log batch."""

    k: int
    pays_at: int
    loses_at: int
    batch: float


def turn_to_loss(k: int, speedups: Sequence[tuple[int, float]]) -> Turn | None:
    """The first batch, in rising order, at which ``speedups`` (batch, speed-up at K = ``k``) fall below 1, if one does.

    >>> round(turn_to_loss(4, [(1, 2.0), (4, 0.5)]).batch, 6)  # 1 lies two thirds down, 4 ** (2 / 3)
    2.519842
    """
    for (low, above), (high, below) in pairwise(speedups):
        if above >= 1 > below:
            share = (above - 1) / (above - below)
            return Turn(k, low, high, low * math.exp(share * math.log(high / low)))
    return None
