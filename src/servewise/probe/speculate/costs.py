"""Rounds of one batch size timed by draft length, as they come: a draft that often knows nothing is cheap to verify."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from servewise.engine.speculative.costs import BatchCosts, RoundTime, RoundTimer
from servewise.probe.speculate.undisturbed import undisturbed

ROUNDS = 6  # of each draft length, in one visit


def time_rounds(timer: RoundTimer, chances: Sequence[Sequence[float]], rng: np.random.Generator) -> list[Any]:
    """``ROUNDS`` of every K, in random order after one of each that is not counted.

    ``chances[k]``: that the draft has a token for each position in a run at K = k; drafts are as long as these say.
    """
    max_k = len(chances) - 1
    order = [*range(max_k + 1), *rng.permutation(np.repeat(range(max_k + 1), ROUNDS)).tolist()]
    drafts = [iter(drafted(each, (ROUNDS + 1) * len(timer.lanes), rng)) for each in chances]
    times = [timer.time(k, [next(drafts[k]) for _ in timer.lanes]) for k in order]
    return [list(each) for each in times[max_k + 1 :]]


def drafted(chances: Sequence[float], count: int, rng: np.random.Generator) -> list[int]:
    """How many tokens each of ``count`` drafts has, in random order: the first i with chance i of ``chances``.

    One draw from each of ``count`` equal parts of [0, 1): lengths come as often as they should, to one draft or so.
    """
    draws = rng.permutation((np.arange(count) + rng.random(count)) / count)
    return [sum(chance > draw for chance in chances) for draw in draws.tolist()]


def batch_costs(lanes: int, visits: Sequence[Sequence[Sequence[float]]], max_k: int) -> BatchCosts:
    """Mean times by K over the rounds of all ``visits`` that were not disturbed."""
    times = [RoundTime(int(row[0]), row[1], row[2], row[3]) for visit in visits for row in visit]
    by_k = [_standing([each for each in times if each.k == k]) for k in range(max_k + 1)]
    drafts = tuple(fmean(each.draft_s for each in found) if k else 0.0 for k, found in enumerate(by_k))
    return BatchCosts(lanes, drafts, tuple(fmean(each.verify_s for each in found) for found in by_k))


def resampled_costs(
    lanes: int, visits: Sequence[Sequence[Sequence[float]]], max_k: int, draws: int, seed: int
) -> list[BatchCosts]:
    """``draws`` costs over visits drawn anew with replacement: how far the timings themselves are known."""
    picks = np.random.default_rng([seed, 3, lanes]).integers(len(visits), size=(draws, len(visits)))
    chosen = [tuple(sorted(row)) for row in picks.tolist()]
    known = {pick: batch_costs(lanes, [visits[place] for place in pick], max_k) for pick in set(chosen)}
    return [known[pick] for pick in chosen]


def _standing(times: Sequence[RoundTime]) -> list[RoundTime]:
    kept = undisturbed([each.draft_s + each.verify_s for each in times], [each.waited_s for each in times])
    return [times[place] for place in kept]


def disturbed_share(visits: Sequence[Sequence[Sequence[float]]]) -> float:
    """The share of rounds that other programs held up."""
    rows = [row for visit in visits for row in visit]
    kept = undisturbed([row[1] + row[2] for row in rows], [row[3] for row in rows])
    return 1 - len(kept) / len(rows)
