"""Acceptance on the user's own prompts: counts by position, prompt by prompt, so that their spread is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from servewise.engine.speculative.acceptance import AcceptanceCounts, PositionCounts
from servewise.engine.speculative.decoder import Request, SpeculativeDecoder, generate
from servewise.engine.speculative.lane import Lane
from servewise.errors import RunFailed

DRAWS = 400
FEWEST_PROMPTS = 5  # for an interval
Interval = tuple[float, float]


def measure_acceptance(decoder: SpeculativeDecoder, requests: Sequence[Request], slots: int) -> list[Any]:
    """Each request's counts by position, as plain rows; raises RunFailed where a lane failed."""
    return [_rows(lane) for lane in generate(decoder, requests, slots)]


def _rows(lane: Lane) -> list[list[float]]:
    if lane.error is not None:
        raise RunFailed(f"a prompt of {lane.prompt_tokens} tokens failed: {lane.error}")
    return [list(each) for each in lane.counts.positions]


def counts_of(rows: Sequence[Sequence[float]]) -> AcceptanceCounts:
    """The counts that ``rows`` hold."""
    return AcceptanceCounts([PositionCounts(*each) for each in rows])


def total(counts: Sequence[AcceptanceCounts]) -> AcceptanceCounts:
    """All prompts' counts together."""
    summed = AcceptanceCounts()
    for each in counts:
        summed.add(each)
    return summed


def offer_chances(counts: AcceptanceCounts, max_k: int) -> list[float]:
    """The chance that the draft has a token for each position; falls with the position."""
    chances, least = [], 1.0
    for place in range(max_k):
        known = counts.positions[place] if place < len(counts.positions) else PositionCounts()
        least = min(least, known.offered / known.asked if known.asked else 0.0)
        chances.append(least)
    return chances


def resampled(counts: Sequence[AcceptanceCounts], seed: int) -> list[AcceptanceCounts]:
    """``DRAWS`` totals over prompts drawn anew with replacement (bootstrap, Efron 1979); none below five prompts."""
    if len(counts) < FEWEST_PROMPTS:
        return []
    picks = np.random.default_rng([seed, 0]).integers(len(counts), size=(DRAWS, len(counts)))
    return [total([counts[place] for place in row]) for row in picks]


def ci95(values: Sequence[float]) -> Interval | None:
    """The middle 95% of a bootstrap's values; None where there are none."""
    if not values:
        return None
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
