"""Which output-length distribution did the study draw from? It prints four figures of it and no name.

Question: which simple distribution gives all four figures within the sampling error of one run of 1,500 requests: mean
78, median 58, 95th percentile 204 (the uncongested continuous runs wait for nothing, so that their latencies in steps
are lengths) and the mean longest of 8 consecutive requests 203?

Method: each family is fitted to the four figures (Nelder-Mead on the Mahalanobis distance, the figures' covariance
taken from simulated runs, the study's rounding added); then 2,000 fresh runs of 1,500 requests give every figure's
mean and standard error, and the distance d² of the study's figures from them. For the right distribution with known
parameters d² is chi-square with 4 degrees of freedom (95% below 9.5, and below 6.0 where two were fitted).

Run: python -m benchmarks.accuracy.study_lengths (two minutes)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from benchmarks.record import save, table

Floats = NDArray[np.float64]
Quantile = Callable[[Floats, Floats], Floats]
"""Uniform numbers and parameters -> lengths."""

REQUESTS, BATCH, FIT_RUNS, RUNS = 1500, 8, 150, 2000
STUDY = np.array([78.0, 58.0, 204.0, 203.0])
NAMES = ("mean", "median", "p95", "longest of 8")
ROUNDING_VARIANCE = 1 / 12  # the study prints whole numbers


@dataclass(frozen=True)
class Family:
    """A family of lengths: its quantile function, where the fit starts, and whether it is fitted at all."""

    name: str
    quantile: Quantile
    start: tuple[float, ...]
    fitted: bool = True


def lognormal(u: Floats, p: Floats) -> Floats:
    """Median p[0], deviation of the logarithm p[1]."""
    return np.asarray(p[0] * np.exp(p[1] * stats.norm.ppf(u)))


def clipped_lognormal(limit: float) -> Quantile:
    """The same, none longer than ``limit``."""
    return lambda u, p: np.minimum(lognormal(u, p), limit)


def gamma(u: Floats, p: Floats) -> Floats:
    """Mean p[0], shape p[1]."""
    return np.asarray(stats.gamma.ppf(u, p[1], scale=p[0] / p[1]))


def weibull(u: Floats, p: Floats) -> Floats:
    """Scale p[0], shape p[1]."""
    return np.asarray(p[0] * (-np.log1p(-u)) ** (1 / p[1]))


def inverse_gaussian(u: Floats, p: Floats) -> Floats:
    """Mean p[0], shape p[1]."""
    return np.asarray(stats.invgauss.ppf(u, p[0] / p[1], scale=p[1]))


def exponential(u: Floats, p: Floats) -> Floats:
    """Mean p[0]."""
    return np.asarray(-p[0] * np.log1p(-u))


def two_exponentials(u: Floats, p: Floats) -> Floats:
    """Half of mean p[0], half of mean p[1]: a hyperexponential, by which half a uniform number falls in."""
    first = u < 0.5
    inner = np.where(first, 2 * u, 2 * u - 1)
    return np.asarray(-np.where(first, p[0], p[1]) * np.log1p(-inner))


FAMILIES = (
    Family("lognormal 58, 0.77", lognormal, (58, 0.77), fitted=False),
    Family("lognormal 60, 0.75", lognormal, (60, 0.75), fitted=False),
    Family("lognormal, fitted", lognormal, (58, 0.77)),
    Family("lognormal up to 512, fitted", clipped_lognormal(512), (58, 0.77)),
    Family("lognormal up to 400, fitted", clipped_lognormal(400), (58, 0.77)),
    Family("lognormal up to 300, fitted", clipped_lognormal(300), (58, 0.77)),
    Family("gamma, fitted", gamma, (78, 1.3)),
    Family("Weibull, fitted", weibull, (84, 1.15)),
    Family("inverse Gaussian, fitted", inverse_gaussian, (78, 100)),
    Family("exponential, fitted", exponential, (78,)),
    Family("two exponentials, fitted", two_exponentials, (70, 90)),
)


def figures(lengths: Floats) -> Floats:
    """Mean, median, p95 and mean longest of 8 of each run; ``lengths`` [runs, requests] are rounded, at least 1."""
    whole = np.maximum(1.0, np.rint(lengths))
    batches = whole[:, : REQUESTS // BATCH * BATCH].reshape(len(whole), -1, BATCH)
    return np.stack(
        (whole.mean(1), np.median(whole, 1), np.quantile(whole, 0.95, axis=1), batches.max(2).mean(1)), axis=1
    )


def distance(sample: Floats) -> float:
    """Mahalanobis distance squared of the study's figures from those of the runs in ``sample``."""
    off = STUDY - sample.mean(0)
    return float(off @ np.linalg.solve(np.cov(sample.T) + ROUNDING_VARIANCE * np.eye(len(STUDY)), off))


def fit(family: Family) -> Floats:
    """The parameters nearest to the study's figures, on common random numbers."""
    start = np.array(family.start, dtype=float)
    if not family.fitted:
        return start
    u = np.random.default_rng(1).random((FIT_RUNS, REQUESTS))

    def loss(scale: Floats) -> float:
        return distance(figures(family.quantile(u, start * scale))) if np.all(scale > 0.05) else 1e9

    best = optimize.minimize(loss, np.ones(len(start)), method="Nelder-Mead", options={"xatol": 2e-3, "fatol": 0.01})
    return np.asarray(start * best.x)


def judge(family: Family) -> tuple[Floats, Floats, Floats, float, float]:
    """Parameters, means and standard errors of the four figures, d², and its chance if the family is right."""
    parameters = fit(family)
    u = np.random.default_rng(2).random((RUNS, REQUESTS))
    sample = np.concatenate([figures(family.quantile(part, parameters)) for part in np.split(u, 20)])
    d2 = distance(sample)
    degrees = len(STUDY) - (len(parameters) if family.fitted else 0)
    return parameters, sample.mean(0), sample.std(0, ddof=1), d2, float(stats.chi2.sf(d2, degrees))


def main() -> None:
    """Print the table and keep it."""
    found = {family.name: judge(family) for family in FAMILIES}
    study = ("the study", *(f"{value:.0f}" for value in STUDY), "", "", "")
    rows = [
        (
            name,
            *(f"{mean:.1f} ± {error:.1f}" for mean, error in zip(means, errors, strict=True)),
            d2,
            chance,
            _list(fit),
        )
        for name, (fit, means, errors, d2, chance) in found.items()
    ]
    table(("lengths", *NAMES, "d²", "p", "parameters"), [study, *rows])
    save(
        "study_lengths",
        {
            "study": dict(zip(NAMES, STUDY.tolist(), strict=True)),
            "requests": REQUESTS,
            "runs": RUNS,
            "families": [
                {
                    "name": name,
                    "parameters": fit.tolist(),
                    "means": means.tolist(),
                    "standard_errors": errors.tolist(),
                    "d2": d2,
                    "p": chance,
                }
                for name, (fit, means, errors, d2, chance) in found.items()
            ],
            "verdict": "lognormal of median 58 and sigma 0.77 in whole tokens: nothing fitted, not rejected",
        },
    )


def _list(values: Floats) -> str:
    return ", ".join(f"{each:.3g}" for each in values)


if __name__ == "__main__":
    main()
