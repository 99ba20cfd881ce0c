"""Coefficients from step records: robust least squares on the relative errors of the steps' times.

Residuals are (measured - predicted) / predicted with the prediction held fixed in each round, so that sums of steps,
which latencies are, come out without bias; residuals beyond three deviations count less (Huber 1964).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log2

import numpy as np
from numpy.typing import NDArray

from servewise.calibrate.coordinates import Coordinates, usual
from servewise.calibrate.descent import Descent, descend
from servewise.calibrate.evidence import Evidence, Told, told
from servewise.calibrate.holdout import BLOCKS, block_of
from servewise.calibrate.observed_steps import ObservedStep, thinned
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.steptime.server_coefficients import EFFICIENCIES
from servewise.steptime.server_roofline import ServerRoofline

Floats = NDArray[np.float64]
FEWEST = 20
MOST = 3_000  # steps of all runs together that are fitted
ROUNDS = 4
HUBER = 3.0
DRAWS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSample:
    """Steps to fit: of which run each is, in which block of that run's time, and in which cell of like shapes."""

    steps: tuple[ObservedStep, ...]
    blocks: tuple[int, ...]
    cells: tuple[int, ...]

    @property
    def seconds(self) -> Floats:
        """Measured."""
        return np.array([each.seconds for each in self.steps])

    @property
    def counts(self) -> Floats:
        """How many equal steps each stands for."""
        return np.array([float(each.count) for each in self.steps])


def sample_of(runs: Sequence[Sequence[ObservedStep]], wanted: Callable[[int], bool]) -> StepSample:
    """The steps of the stretches of time that are ``wanted``, thinned, with their stretches and cells."""
    numbered = [
        (run * BLOCKS + block_of(place, len(steps)), step)
        for run, steps in enumerate(runs)
        for place, step in enumerate(steps)
        if wanted(block_of(place, len(steps)))
    ]
    by_step = {id(step): block for block, step in numbered}
    kept = thinned([step for _, step in numbered], MOST)
    if len(kept) < FEWEST:
        raise InputError(f"hold {len(kept)} steps, too few to fit", where="the runs", hint=f"measure {FEWEST} or more")
    cells: dict[tuple[int, ...], int] = {}
    return StepSample(
        steps=tuple(kept),
        blocks=tuple(by_step[id(each)] for each in kept),
        cells=tuple(cells.setdefault(_cell(each), len(cells)) for each in kept),
    )


def _cell(step: ObservedStep) -> tuple[int, ...]:
    shape = step.shape
    mean = shape.decode_context_tokens / max(1, shape.decode_sequences)
    sizes = (shape.decode_sequences, shape.prefill_tokens, mean, shape.prefill_pairs)
    return tuple(round(2 * log2(1 + each)) for each in sizes)


def fit_steps(deployment: Deployment, sample: StepSample, seed: int = 0) -> Told:
    """The coefficients that ``sample`` tells of ``deployment``, with intervals from blocks of time, resampled."""
    coordinates = Coordinates(usual=usual(deployment), unit_s=float(np.median(sample.seconds)))

    def values(point: Floats) -> Floats:
        times = predicted(ServerRoofline(deployment, coordinates.coefficients(point)), sample.steps)
        return np.concatenate((times, point))

    belief = coordinates.vector(coordinates.usual)
    target = np.concatenate((sample.seconds, belief))
    count = len(sample.steps)
    own = 1.0 / coordinates.spreads
    even = np.concatenate((1.0 / (0.1 * sample.seconds), own))
    starts = [
        descend(values, target, even, each, coordinates.bounds) for each in _begun(deployment, sample, coordinates)
    ]
    found = min(starts, key=lambda each: float(np.square(even * (target - each.values)).sum()))
    for _ in range(ROUNDS):
        evidence = _gathered(sample, found, coordinates)
        weights = _trust(sample, evidence, found.values[:count]) / found.values[:count]
        found = descend(values, target, np.concatenate((weights, own)), found.point, coordinates.bounds)
    evidence = _gathered(sample, found, coordinates)
    residuals = sample.seconds / found.values[:count] - 1.0
    return told(coordinates, found.point, evidence, _resampled(sample, residuals, seed), seed)


def _begun(deployment: Deployment, sample: StepSample, coordinates: Coordinates) -> list[Floats]:
    """Where the fit begins: the median step comes out by slower products, or half of the shortest step is overhead."""
    usually, shortest_s = coordinates.usual, float(np.quantile(sample.seconds, 0.05))
    ratio = float(np.median(sample.seconds / predicted(ServerRoofline(deployment, usually), sample.steps)))
    shares = {name: getattr(usually, name) / max(1.0, ratio) for name in EFFICIENCIES}
    slow = replace(usually, **shares)
    paused = replace(usually, step_s=0.5 * shortest_s, sequence_s=0.02 * shortest_s, **shares)
    return [np.clip(coordinates.vector(each), *coordinates.bounds) for each in (slow, paused)]


def predicted(clock: ServerRoofline, steps: Sequence[ObservedStep]) -> Floats:
    """The times of ``steps`` by ``clock`` [s]."""
    return np.array([clock.seconds(each.shape) for each in steps])


def _trust(sample: StepSample, evidence: Evidence, found: Floats) -> Floats:
    """What each relative residual is multiplied by: a cell weighs as its mean is known, Huber's weights within."""
    off = np.abs(sample.seconds / found - 1.0)
    limit = HUBER * max(1.4826 * float(np.median(off)), 1e-3)
    cells = np.array(sample.cells)
    size = np.bincount(cells).astype(float)
    each: Floats = np.sqrt(np.minimum(1.0, limit / np.maximum(off, 1e-300)) / (size * evidence.variances)[cells])
    return each


def _gathered(sample: StepSample, found: Descent, coordinates: Coordinates) -> Evidence:
    """The cells' mean derivatives and residuals; the noise of a mean from the scatter within cells."""
    count = len(sample.steps)
    relative = found.jacobian[:count] / found.values[:count, None]
    residuals = sample.seconds / found.values[:count] - 1.0
    cells = np.array(sample.cells)
    size = np.bincount(cells).astype(float)
    sums = np.array([np.bincount(cells, column) for column in relative.T]).T
    mean = np.bincount(cells, residuals) / size
    scatter = float(np.square(residuals - mean[cells]).sum() / max(1, count - len(size)))
    return Evidence(jacobian=sums / size[:, None], residuals=mean, noise=scatter / size, spreads=coordinates.spreads)


def _resampled(sample: StepSample, residuals: Floats, seed: int) -> Floats:
    """The change of every cell's mean residual in each of DRAWS resamplings of the blocks of time."""
    places = {block: place for place, block in enumerate(dict.fromkeys(sample.blocks))}
    at = np.array([places[each] for each in sample.blocks])
    size, sums = np.zeros((len(places), max(sample.cells) + 1)), np.zeros((len(places), max(sample.cells) + 1))
    np.add.at(size, (at, np.array(sample.cells)), 1.0)
    np.add.at(sums, (at, np.array(sample.cells)), residuals)
    original = sums.sum(axis=0) / size.sum(axis=0)
    taken = np.random.default_rng(seed).multinomial(len(places), np.full(len(places), 1 / len(places)), DRAWS)
    drawn_size, drawn_sums = taken @ size, taken @ sums
    return np.where(drawn_size > 0, drawn_sums / np.maximum(drawn_size, 1) - original, 0.0)
