"""What the data tell of each coefficient, and what they do not.

Data are gathered into cells (steps of like shape, or one percentile of one run). A cell's relative error is the noise
of its mean and the model's own error, which no number of repetitions averages away. So two coefficients count as told
apart only where their effects differ by more than the model errs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.calibrate.coordinates import Coordinates
from servewise.steptime.calibration import Assumed, Fitted
from servewise.steptime.server_coefficients import COEFFICIENTS, EFFICIENCIES, ServerCoefficients

Floats = NDArray[np.float64]
LEAST_MODEL_ERROR, LEAST_NOISE = 0.01, 1e-8
WIDEST_EFFICIENCY = 0.35  # standard error of the logarithm: an interval from half to twice
WIDEST_SHARE = 0.15  # standard error of what an overhead adds, as a share of the time it adds to
NO_EFFECT = 1e-3  # below this share of any time, a coefficient was not seen at work
TAILS = (2.5, 97.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Cells by row: derivatives of the logarithm of the predicted time by each coordinate, residuals, noise.

    ``residuals`` are log(measured / predicted); ``noise`` the variance of each from repetition alone; ``spreads`` what
    was believed of the coordinates before.
    """

    jacobian: Floats
    residuals: Floats
    noise: Floats
    spreads: Floats

    @property
    def model_error(self) -> float:
        """The model's own relative error: what the residuals scatter beyond their noise (DerSimonian and Laird 1986).

        Residuals that all but vanish (as many coefficients as cells) say nothing of it: then the least holds.
        """
        precision = 1.0 / np.maximum(self.noise, LEAST_NOISE)
        freedom = max(0, len(self.residuals) - self.jacobian.shape[1])
        beyond = float((precision * np.square(self.residuals)).sum() - freedom) / max(float(precision.sum()), 1e-300)
        return float(max(LEAST_MODEL_ERROR, np.sqrt(max(beyond, 0.0))))

    @property
    def variances(self) -> Floats:
        """Of each cell, both kinds together."""
        return self.noise + self.model_error**2

    def covariance(self) -> Floats:
        """Of the coordinates, after the data."""
        weighted = self.jacobian / np.sqrt(self.variances)[:, None]
        return np.asarray(np.linalg.inv(weighted.T @ weighted + np.diag(1.0 / np.square(self.spreads))), np.float64)

    def draws(self, resampled: Floats, rng: np.random.Generator) -> Floats:
        """A change of the coordinates for each row of ``resampled`` residuals (their changes from the original ones).

        A one-step bootstrap: the Gauss-Newton step from the fitted point to the optimum of the resampled data, with
        the model's own error, and the belief where the data leave it open, drawn anew each time.
        """
        errors = self.model_error * rng.standard_normal(resampled.shape)
        believed = rng.standard_normal((len(resampled), len(self.spreads))) / self.spreads
        pull = ((resampled + errors) / self.variances) @ self.jacobian + believed
        changes: Floats = pull @ self.covariance()
        return changes


def untold(evidence: Evidence) -> dict[str, str]:
    """The coefficients that the evidence cannot tell, each with the reason."""
    deviations = np.sqrt(np.diag(evidence.covariance()))
    reach = np.abs(evidence.jacobian).max(axis=0, initial=0.0)
    found = {}
    for place, name in enumerate(COEFFICIENTS):
        # Where an overhead is needed to be known is where it weighs most; an efficiency is carried to other loads.
        wide = deviations[place] * (1.0 if name in EFFICIENCIES else reach[place])
        if reach[place] * evidence.spreads[place] < NO_EFFECT:
            found[name] = "these runs do not depend on it"
        elif wide > (WIDEST_EFFICIENCY if name in EFFICIENCIES else WIDEST_SHARE):
            other = _partner(evidence, place)
            found[name] = f"these runs cannot tell it from {other}" if other else "these runs hardly depend on it"
    return found


def _partner(evidence: Evidence, place: int) -> str | None:
    """The coefficient with which that one is exchanged most freely: by the correlation of their errors."""
    covariance = evidence.covariance()
    size = np.sqrt(np.diag(covariance))
    likeness = np.abs(covariance[place] / (size * size[place]))
    likeness[place] = -1.0
    return COEFFICIENTS[int(likeness.argmax())] if likeness.max() > 0.3 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came out: ``point`` in ``coordinates``, coefficients with intervals, and those that were not told."""

    coordinates: Coordinates
    point: Floats
    evidence: Evidence
    fitted: dict[str, Fitted]
    assumed: dict[str, Assumed]

    @property
    def coefficients(self) -> ServerCoefficients:
        """All of them."""
        return self.coordinates.coefficients(self.point)


def told(coordinates: Coordinates, point: Floats, evidence: Evidence, resampled: Floats, seed: int) -> Told:
    """The coefficients at ``point``, each with its 95% interval or the reason why it has none."""
    changes = evidence.draws(resampled, np.random.default_rng(seed))
    ends = np.percentile(np.clip(point + changes, *coordinates.bounds), TAILS, axis=0)
    lost = untold(evidence)
    fitted, assumed = {}, {}
    for place, name in enumerate(COEFFICIENTS):
        value = coordinates.value(name, float(point[place]))
        if name in lost:
            assumed[name] = Assumed(value=value, why=lost[name], measure=f"measure {MEASURE[name]}")
            continue
        low, high = coordinates.interval(name, [float(each) for each in ends[:, place]])
        fitted[name] = Fitted(value=value, ci95=(min(low, value), max(high, value)))
    return Told(coordinates=coordinates, point=point, evidence=evidence, fitted=fitted, assumed=assumed)


MEASURE = {
    "step_s": "runs at 1 stream and at 32 or more, with short prompts",
    "sequence_s": "runs at 1, 8 and 32 or more streams with short prompts",
    "weight_efficiency": "runs at 1 and at 8 streams with answers of 64 tokens or more",
    "flop_efficiency": "a run at 16 or more streams, or with prompts of 512 tokens or more",
    "ramp_tokens": "runs at 4, 16 and 64 streams beside prompts of 512 tokens or more",
    "kv_efficiency": "runs with contexts of 100 and of 2,000 or more tokens at 8 or more streams",
    "attention_efficiency": "runs with prompts of 100 and of 2,000 or more tokens",
    "request_s": "request records of the server over HTTP, at 1 stream, with prompts of two lengths",
}
