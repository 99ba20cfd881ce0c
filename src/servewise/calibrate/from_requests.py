"""Coefficients from request records alone: the simulator replays each run, its latencies are matched to the measured.

The match is least squares on logarithms of means and percentiles by run, each weighed by its noise (from resampled
blocks of requests) and the model's own error, by damped Gauss-Newton steps through the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from servewise.calibrate.coordinates import Coordinates, usual
from servewise.calibrate.descent import Descent, Values, descend
from servewise.calibrate.evidence import LEAST_MODEL_ERROR, Evidence, Told, told
from servewise.calibrate.replay import Replay, Served
from servewise.calibrate.statistics import Latencies, measured, resampled, simulated, statistics
from servewise.deployment.deployment import Deployment
from servewise.steptime.server_coefficients import EFFICIENCIES, ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Rounds of descent, and the step of their differences. Latencies of a run jump a little where a request just misses a
# step: where short stretches lead no further, a longer one may.
DESCENTS = ((10, 0.005), (5, 0.03), (10, 0.005))
FIRST_ERROR = 0.05
ALSO = 3.0  # a second beginning is tried where its cost is at most so many times the best one's
# Sorts of server to begin with: overheads of step and sequence in usual steps, ramp, request in shortest TTFTs.
SORTS = ((0.0, 0.0, 0.0, 0.0), (0.4, 0.01, 0.0, 0.1), (0.1, 0.01, 30.0, 0.1), (0.1, 0.01, 10.0, 0.7))


def predict(deployment: Deployment, served: Served, replay: Replay, coefficients: ServerCoefficients) -> Latencies:
    """The latencies of ``replay`` at a server of those coefficients."""
    return simulated(replay, served.run(replay, ServerRoofline(deployment, coefficients)))


def fit_requests(
    deployment: Deployment, served: Served, replays: Sequence[Replay], rows: Sequence[Ints], seed: int = 0
) -> Told:
    """The coefficients that the ``rows`` of each replay's judged requests tell, with their intervals."""
    known = [measured(replay).of(some) for replay, some in zip(replays, rows, strict=True)]
    shortest_s = min(float(np.median(each.ttft)) for each in known)
    unit_s = min(float(np.nanmedian(each.tpot)) for each in known)
    coordinates = Coordinates(usual=usual(deployment), unit_s=unit_s, request_spread_s=shortest_s)

    def values(point: Floats) -> Floats:
        coefficients = coordinates.coefficients(point)
        pairs = zip(replays, rows, strict=True)
        found = [predict(deployment, served, replay, coefficients).of(some) for replay, some in pairs]
        return np.concatenate([*map(statistics, found), point])

    rng = np.random.default_rng(seed)
    drawn = np.concatenate([resampled(each, rng) for each in known], axis=1)
    original = np.concatenate([statistics(each) for each in known])
    noise = 2.0 * drawn.var(axis=0)  # the simulated run is one draw of many, as the measured one is
    target = np.concatenate((original, coordinates.vector(coordinates.usual)))
    own = 1.0 / coordinates.spreads
    error = FIRST_ERROR
    starts = _begun(values, coordinates, original, np.concatenate((1.0 / np.sqrt(noise + error**2), own)), target)
    for rounds, step in DESCENTS:
        weights = np.concatenate((1.0 / np.sqrt(noise + error**2), own))
        found = _best(values, target, weights, starts, coordinates, rounds, step)
        starts = [found.point]
        evidence = Evidence(
            jacobian=found.jacobian[: len(original)],
            residuals=original - found.values[: len(original)],
            noise=noise,
            spreads=coordinates.spreads,
        )
        error = max(LEAST_MODEL_ERROR, evidence.model_error)
    return told(coordinates, found.point, evidence, drawn - original, seed)


def _best(
    values: Values,
    target: Floats,
    weights: Floats,
    starts: Sequence[Floats],
    coordinates: Coordinates,
    rounds: int,
    step: float,
) -> Descent:
    found = [descend(values, target, weights, each, coordinates.bounds, rounds=rounds, step=step) for each in starts]
    return min(found, key=lambda each: float(np.square(weights * (target - each.values)).sum()))


def _begun(values: Values, coordinates: Coordinates, original: Floats, weights: Floats, target: Floats) -> list[Floats]:
    """Where the descent begins: of a few sorts of server, each slowed until the latencies come out; the best."""
    sorts = []
    unit_s = coordinates.unit_s
    for step_share, sequence_share, ramp, request_share in SORTS:
        slow = replace(
            coordinates.usual,
            step_s=step_share * unit_s,
            sequence_s=sequence_share * unit_s,
            ramp_tokens=ramp,
            request_s=request_share * coordinates.request_spread_s,
        )
        for _ in range(3):
            ratio = float(np.exp(np.median(original - values(coordinates.vector(slow))[: len(original)])))
            slower = {name: min(1.0, max(1e-3, getattr(slow, name) / ratio)) for name in EFFICIENCIES}
            slow = replace(slow, **slower)
        sorts.append(coordinates.vector(slow))
    costs = [float(np.square(weights * (target - values(each))).sum()) for each in sorts]
    ranked = sorted(range(len(sorts)), key=costs.__getitem__)
    return [sorts[each] for each in ranked[:2] if costs[each] <= ALSO * costs[ranked[0]]]
