"""A calibration on step records: the fit, and its errors on what was held out and on each run left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from servewise.calibrate.calibrated import Calibrated
from servewise.calibrate.error import Error, LevelError, error_of
from servewise.calibrate.from_steps import FEWEST, fit_steps, predicted, sample_of
from servewise.calibrate.holdout import Holdout, block_of, everything
from servewise.calibrate.observed_steps import ObservedStep
from servewise.deployment.deployment import Deployment
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.server_coefficients import ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline

NONE = error_of(())


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRun:
    """One run's steps; ``load`` names its load."""

    load: str
    steps: Sequence[ObservedStep]


def calibrate_on_steps(
    deployment: Deployment, runs: Sequence[StepRun], holdout: Holdout, *, dropped: int = 0, seed: int = 0
) -> Calibrated:
    """The coefficients that ``runs`` tell of ``deployment``. Raises InputError for too few steps."""
    steps = [run.steps for run in runs]
    told = fit_steps(deployment, sample_of(steps, holdout.fits), seed)
    clock = ServerRoofline(deployment, told.coefficients)
    return Calibrated(
        told=told,
        train=_error(clock, runs, holdout.fits),
        heldout=_error(clock, runs, holdout.holds),
        levels=tuple(_level(deployment, clock, runs, which, holdout) for which in range(len(runs))),
        valid_range=range_of([step for run in steps for step in run], deployment),
        source="step records",
        dropped=dropped,
    )


def _level(
    deployment: Deployment, clock: ServerRoofline, runs: Sequence[StepRun], which: int, holdout: Holdout
) -> LevelError:
    run, others = runs[which], [each for place, each in enumerate(runs) if place != which]
    other = None
    if sum(len(each.steps) for each in others) >= FEWEST:
        found: ServerCoefficients = fit_steps(
            deployment, sample_of([each.steps for each in others], everything)
        ).coefficients
        other = ServerRoofline(deployment, found)
    judged = holdout.holds if holdout.share else everything
    return LevelError(
        load=run.load,
        train=_error(clock, [run], holdout.fits),
        heldout=_error(clock, [run], holdout.holds),
        left_out=_error(other, [run], everything) if other else NONE,
        bias=_bias(clock, run, judged),
        bias_left_out=_bias(other, run, everything) if other else float("nan"),
    )


def _chosen(run: StepRun, wanted: Callable[[int], bool]) -> list[ObservedStep]:
    return [step for place, step in enumerate(run.steps) if wanted(block_of(place, len(run.steps)))]


def _error(clock: ServerRoofline, runs: Sequence[StepRun], wanted: Callable[[int], bool]) -> Error:
    steps = [step for run in runs for step in _chosen(run, wanted)]
    return error_of(predicted(clock, steps) / np.array([each.seconds for each in steps])) if steps else NONE


def _bias(clock: ServerRoofline, run: StepRun, wanted: Callable[[int], bool]) -> float:
    steps = _chosen(run, wanted)
    counts = np.array([each.count for each in steps])
    measured = float((counts * np.array([each.seconds for each in steps])).sum())
    return float((counts * predicted(clock, steps)).sum()) / measured if measured else float("nan")


def range_of(steps: Sequence[ObservedStep], deployment: Deployment) -> ValidRange:
    """What the steps spanned: sequences decoding, their mean context, prompt tokens; 0 where there was none."""
    shapes = [each.shape for each in steps]
    decoding = [each.decode_sequences for each in shapes if each.decode_sequences]
    context = [each.decode_context_tokens // each.decode_sequences for each in shapes if each.decode_sequences]
    prompts = [each.prefill_tokens for each in shapes if each.prefill_tokens]
    pairs = [(min(each, default=0), max(each, default=0)) for each in (decoding, context, prompts)]
    tensor = deployment.parallelism.tensor
    return ValidRange(
        decode_sequences=pairs[0], context_tokens=pairs[1], prefill_tokens=pairs[2], tensor=(tensor, tensor)
    )
