"""Whether the accept/reject rule gives the target's distribution, from the study's two drafts, by a test with power."""

from __future__ import annotations

import math

import numpy as np

from servewise.study import published
from servewise.study.agreement import holds, rounded, within_factor
from servewise.study.row import StudyRow, StudyTable
from servewise.study.speculative_rule import (
    accept,
    accept_or_resample,
    draft_at_distance,
    goodness_of_fit,
    resample_from_target,
    sample,
    total_variation,
)
from servewise.study.transformer import Floats

SEED = 0
TRIALS = 30_000
REJECT_BELOW = 0.001  # chance of calling the right rule wrong
FACTOR = 3.0  # two samples of about 30,000 tokens


def target() -> Floats:
    """The target: nine tokens, chances as 1/rank (Zipf)."""
    weights: Floats = 1 / np.arange(1, 10)
    chances: Floats = weights / weights.sum()
    return chances


def rule_check_table() -> StudyTable:
    """Distance of draft and of output from the target, with a chi-square test of both the rule and a wrong rule."""
    rows = [row for distance, printed in published.RULE_DISTANCE.items() for row in _rows(distance, printed)]
    return StudyTable(
        name="acceptance_rule",
        title="The accept/reject rule reproduces the target from drafts that are 0.15 and 0.47 away",
        rows=tuple(rows),
        note=f"{TRIALS:,} tokens a draft, seed {SEED}; a sample of this size is {sampling_distance():.4f} away from "
        "its own distribution on average, so distances like the study's are sampling noise",
    )


def sampling_distance() -> float:
    """Mean total variation between ``TRIALS`` draws of the target and the target: sum of sqrt(p(1-p) / (2 pi n))."""
    p_V = target()
    return float(np.sum(np.sqrt(p_V * (1 - p_V))) / math.sqrt(2 * math.pi * TRIALS))


def _rows(distance: float, printed: str) -> list[StudyRow]:
    p_V = target()
    q_V, rng = draft_at_distance(p_V, distance), np.random.default_rng([SEED, round(100 * distance)])
    drafted_N = sample(q_V, TRIALS, rng)
    output_N = accept_or_resample(p_V, q_V, drafted_N, rng)
    fit = goodness_of_fit(output_N, p_V)
    wrong = goodness_of_fit(resample_from_target(p_V, q_V, drafted_N, rng), p_V)
    kept = float(np.mean(accept(p_V, q_V, drafted_N, rng)))
    observed = total_variation(np.bincount(output_N, minlength=len(p_V)) / TRIALS, p_V)
    case = {"draft_distance": distance}
    return [
        rounded(case, "distance of the draft", f"{distance:.2f}", total_variation(p_V, q_V)),
        within_factor(case, "distance of the output", printed, observed, FACTOR, note=f"acceptance {kept:.3f}"),
        holds(
            case,
            "chi-square test does not reject the rule",
            fit.p_value >= REJECT_BELOW,
            note=f"chi-square {fit.statistic:.1f} on {fit.degrees}, p = {fit.p_value:.2f}",
        ),
        holds(
            case,
            "the same test rejects a rule without the residual",
            wrong.p_value < REJECT_BELOW,
            note=f"chi-square {wrong.statistic:.0f} on {wrong.degrees}",
        ),
    ]
