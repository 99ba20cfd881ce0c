"""Acceptance on the user's own prompts, judged at every token, so that every draft length can be replayed.

In a run at K, easy stretches pass in few verifications and hard ones in many, so that acceptance counted at one K is
not that at another. Here the target takes one token a round, while at each the whole draft is judged; how a run at any
K up to that length would have gone then follows token by token (exactly where decoding is greedy).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servewise.engine.speculative.acceptance import AcceptanceCounts, PositionCounts
from servewise.engine.speculative.decoder import Request, SpeculativeDecoder
from servewise.engine.speculative.lane import Lane
from servewise.engine.speculative.verification import NOT_FINITE, verify
from servewise.errors import RunFailed

DRAWS = 400
FEWEST_PROMPTS = 5  # for an interval
Interval = tuple[float, float]


class Judged(NamedTuple):
    """A draft at one token of a reply: tokens asked for, offered, and accepted one after another."""

    asked: int
    offered: int
    accepted: int


def judge_every_token(decoder: SpeculativeDecoder, requests: Sequence[Request], max_k: int) -> list[list[list[int]]]:
    """Each request's drafts (``Judged`` as plain rows) at every token of its reply after the first, all in one batch.

    Raises RunFailed where the cache is too small or logits are not finite.
    """
    lanes = [decoder.admit(request) for request in requests]
    found: list[list[list[int]]] = [[] for _ in requests]
    if None in lanes:
        raise RunFailed(f"the KV cache is too small for {len(requests)} prompts at once")
    places = {lane.serial: place for place, lane in enumerate(decoder.lanes)}
    while running := [lane for lane in decoder.lanes if not decoder.ended(lane)]:
        for lane, judged in zip(running, _round(decoder, running, max_k), strict=True):
            found[places[lane.serial]].append(list(judged))
    for lane in list(decoder.lanes):
        decoder.release(lane)
    return found


def _round(decoder: SpeculativeDecoder, lanes: Sequence[Lane], max_k: int) -> list[Judged]:
    """The whole draft is judged, one token is taken: it has the target's distribution whatever the draft was."""
    asked = [min(max_k, lane.remaining - 1) for lane in lanes]
    proposals = decoder.proposals(lanes, asked)
    judged = []
    for lane, most, proposal, tokens in zip(
        lanes, asked, proposals, verify(decoder.target, lanes, proposals), strict=True
    ):
        if tokens is None:
            raise RunFailed(f"a prompt of {lane.prompt_tokens} tokens failed: {NOT_FINITE}")
        lane.tokens.append(tokens[0])
        decoder.target.keep(lane.serial, len(lane.tokens) - 1)
        judged.append(Judged(most, len(proposal.tokens), len(tokens) - 1))
    return judged


def replayed(reply: Sequence[Sequence[int]], k: int) -> AcceptanceCounts:
    """Counts of a run at K = ``k`` over a reply that was judged at every token."""
    counts, at = AcceptanceCounts(), 0
    while at < len(reply):
        judged = Judged(*reply[at])
        accepted = min(judged.accepted, k)
        if k:
            counts.observe(min(judged.asked, k), min(judged.offered, k), accepted)
        at += accepted + 1
    return counts


class Replays:
    """Every prompt's counts at every K up to ``max_k``, ready to be added up over any choice of prompts."""

    def __init__(self, replies: Sequence[Sequence[Sequence[int]]], max_k: int) -> None:
        self.prompts, self.max_k = len(replies), max_k
        self._counts_PK4 = np.zeros((len(replies), max_k + 1, max_k, 4))
        for place, reply in enumerate(replies):
            for k in range(1, max_k + 1):
                for position, each in enumerate(replayed(reply, k).positions):
                    self._counts_PK4[place, k, position] = each

    def total(self, prompts: Sequence[int] | None = None) -> list[AcceptanceCounts]:
        """Counts by K, from 0, of these prompts (as often as they are named); None: of all."""
        chosen = range(self.prompts) if prompts is None else prompts
        return self._by_k(np.bincount(list(chosen), minlength=self.prompts).astype(float))

    def resampled(self, seed: int) -> list[list[AcceptanceCounts]]:
        """``DRAWS`` totals over prompts drawn anew (bootstrap, Efron 1979); none below five prompts."""
        if self.prompts < FEWEST_PROMPTS:
            return []
        rng = np.random.default_rng([seed, 0])
        weights = rng.multinomial(self.prompts, np.full(self.prompts, 1 / self.prompts), size=DRAWS)
        return [self._by_k(row.astype(float)) for row in weights]

    def _by_k(self, weights_P: NDArray[np.float64]) -> list[AcceptanceCounts]:
        summed_K4 = np.tensordot(weights_P, self._counts_PK4, 1).tolist()
        return [
            AcceptanceCounts([PositionCounts(*each) for each in positions[:k]]) for k, positions in enumerate(summed_K4)
        ]


def offer_chances(counts: AcceptanceCounts) -> list[float]:
    """The chance that the draft has a token for each position; falls with the position."""
    chances, least = [], 1.0
    for known in counts.positions:
        least = min(least, known.offered / known.asked if known.asked else 0.0)
        chances.append(least)
    return chances


def ci95(values: Sequence[float]) -> Interval | None:
    """The middle 95% of a bootstrap's values; None where there are none."""
    if not values:
        return None
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
