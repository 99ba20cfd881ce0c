"""All pairs of answers in a few numbers, with intervals over the prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servewise.measure.quality.agreement import Agreement

RESAMPLES = 2_000
FEWEST = 8  # prompts below which there is no interval


def summary(found: Sequence[Agreement], seed: int = 0) -> dict[str, Any]:
    """Plain JSON. Intervals are 95%, by bootstrap over prompts; None below eight.

    ``step_agreement``: of the steps that both took with the same text before them, the share at which they chose the
    same; ``first_difference`` counts those pairs alone that part. ``kl_low_nats`` is KL(a || b) a step, at the least.
    """
    equal = np.array([each.equal for each in found], float)
    compared = np.array([each.compared for each in found], float)
    parted = sorted(each.first_difference for each in found if each.first_difference is not None)
    draws = _draws(len(found), seed)
    result: dict[str, Any] = {
        "prompts": len(found),
        "unit": found[0].unit if len({each.unit for each in found}) == 1 else "tokens or characters",
        "exact_share": float(np.mean([each.exact for each in found])),
        "ci95_exact_share": _interval(np.array([each.exact for each in found], float), np.ones(len(found)), draws),
        "step_agreement": _ratio(equal, compared),
        "ci95_step_agreement": _interval(equal, compared, draws),
        "equal_mean": float(equal.mean()),
        "first_difference_p50": float(np.median(parted)) if parted else None,
        "first_difference_least": parted[0] if parted else None,
        "steps_compared": int(compared.sum()),
    }
    counts = np.array([len(each.divergences) for each in found], float)
    if not counts.sum():
        return result | {"kl_low_nats": None}
    for key, name in (("kl_low_nats", "kl_low"), ("tv_low", "tv_low"), ("tv_high", "tv_high"), ("unseen", "unseen")):
        sums = np.array([sum(getattr(step, name) for step in each.divergences) for each in found])
        result |= {key: _ratio(sums, counts), f"ci95_{key}": _interval(sums, counts, draws)}
    return result | {"steps_with_probabilities": int(counts.sum())}


def _draws(count: int, seed: int) -> NDArray[np.int64] | None:
    if count < FEWEST:
        return None
    return np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))


def _ratio(sums: NDArray[np.float64], weights: NDArray[np.float64]) -> float | None:
    total = float(weights.sum())
    return float(sums.sum()) / total if total else None


def _interval(
    sums: NDArray[np.float64], weights: NDArray[np.float64], draws: NDArray[np.int64] | None
) -> list[float] | None:
    """Percentile bootstrap of the ratio of sums."""
    if draws is None:
        return None
    below = weights[draws].sum(axis=1)
    ratios = sums[draws].sum(axis=1)[below > 0] / below[below > 0]
    return [float(each) for each in np.quantile(ratios, (0.025, 0.975))] if len(ratios) else None
