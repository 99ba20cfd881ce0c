"""How many tokens to draft: a fixed number, or the best by the acceptance and the costs that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from servewise.engine.speculative.acceptance import AcceptanceCounts, PositionCounts
from servewise.errors import InputError
from servewise.techniques.speculation import SpeculationRow, batched_speedup, best_row, tokens_by_position

PRIOR_ACCEPTANCE, PRIOR_WEIGHT = 0.7, 4.0  # what a position is taken to have before it was seen often
MEMORY = 0.99  # what is left of a count's weight after each round: about the last hundred rounds count
LOOK_AGAIN_ROUNDS = 64  # after so many rounds without a draft one is tried: the text may have changed


class Costs(Protocol):
    """Measured times of a batch, in seconds."""

    def draft_step_s(self, lanes: int) -> float:
        """One drafted token of each of ``lanes`` sequences."""
        ...

    def verify_s(self, lanes: int, tokens: int) -> float:
        """The target's pass over ``tokens`` new tokens of each; 1 is a plain step."""
        ...


class DraftLength(Protocol):
    """Chooses K for each round."""

    def choose(self, lanes: int) -> int:
        """Tokens to draft for each of ``lanes`` sequences; 0: none."""
        ...

    def observe(self, counts: AcceptanceCounts) -> None:
        """What the round's verifications kept."""
        ...


class FixedLength(NamedTuple):
    """Always ``k``."""

    k: int

    def choose(self, lanes: int) -> int:
        """``k``."""
        del lanes
        return self.k

    def observe(self, counts: AcceptanceCounts) -> None:
        """Nothing changes."""


class MeasuredLength:
    """The K up to ``max_k`` of the largest predicted speed-up, from acceptance by position and from ``costs``.

    Acceptance is that of about the last hundred rounds; a position seen rarely is taken to be like the one before it.
    Where no draft pays, one is tried now and then.
    """

    def __init__(self, costs: Costs, max_k: int = 8) -> None:
        if max_k < 1:
            raise InputError(f"must be 1 or more, not {max_k!r}", where="max_k")
        self._costs, self._max_k = costs, max_k
        self._counts = AcceptanceCounts()
        self._rounds_without = 0

    def choose(self, lanes: int) -> int:
        """The best K for so many sequences."""
        best = best_row(length_rows(smoothed(self._counts, self._max_k), self._costs, lanes)).k
        self._rounds_without = 0 if best else self._rounds_without + 1
        if self._rounds_without > LOOK_AGAIN_ROUNDS:
            self._rounds_without = 0
            return 1
        return best

    def observe(self, counts: AcceptanceCounts) -> None:
        """Add what the round's verifications kept; older ones weigh less."""
        faded = [PositionCounts(*(MEMORY * count for count in each)) for each in self._counts.positions]
        self._counts = AcceptanceCounts(faded)
        self._counts.add(counts)


def smoothed(counts: AcceptanceCounts, max_k: int) -> list[float]:
    """The chance of each position to be accepted where the one before it was, drawn towards that one's where rare.

    (accepted + w a_before) / (asked x survival before + w), w = ``PRIOR_WEIGHT``: the mean of a beta distribution.
    """
    chances, before, survived = [], PRIOR_ACCEPTANCE, 1.0
    for place in range(max_k):
        known = counts.positions[place] if place < len(counts.positions) else PositionCounts()
        tried = max(known.asked * survived, known.accepted)
        before = (known.accepted + PRIOR_WEIGHT * before) / (tried + PRIOR_WEIGHT)
        chances.append(before)
        survived = min(survived, known.survival)
    return chances


def length_rows(chances: Sequence[float], costs: Costs, lanes: int) -> list[SpeculationRow]:
    """Every K from 0 to ``len(chances)`` with its tokens a verification and its speed-up for a batch of ``lanes``."""
    step_s, draft_step_s = costs.verify_s(lanes, 1), costs.draft_step_s(lanes)
    rows = []
    for k in range(len(chances) + 1):
        tokens = tokens_by_position(chances[:k])
        verify_s = costs.verify_s(lanes, k + 1)
        gain = batched_speedup(tokens, k, step_s=step_s, draft_step_s=draft_step_s, verify_s=verify_s)
        rows.append(SpeculationRow(k, tokens, gain))
    return rows
