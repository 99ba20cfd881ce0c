"""A calibration on request records: the fit, and its errors on what was held out and on each run left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from servewise.calibrate.by_steps import range_of
from servewise.calibrate.calibrated import Calibrated
from servewise.calibrate.error import Error, LevelError, error_of
from servewise.calibrate.from_requests import fit_requests, predict
from servewise.calibrate.holdout import Holdout, block_of, everything
from servewise.calibrate.observed_steps import observed_steps
from servewise.calibrate.replay import Replay, Served
from servewise.calibrate.statistics import Latencies, measured, ratios
from servewise.deployment.deployment import Deployment
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.server_coefficients import ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline

Ints = NDArray[np.int64]
Wanted = Callable[[int], bool]
NONE = error_of(())
FEWEST_JUDGED = 3  # requests of which percentiles are compared


def calibrate_on_requests(
    deployment: Deployment,
    served: Served,
    replays: Sequence[Replay],
    holdout: Holdout,
    *,
    dropped: int = 0,
    seed: int = 0,
) -> Calibrated:
    """The coefficients that the runs tell of ``deployment`` served so.

    Errors are of TTFT and TPOT at p50 and p95 and of the mean time from sending to end (of a closed loop the
    throughput), run by run.
    """
    fitted = [_rows(each, holdout.fits) for each in replays]
    told = fit_requests(deployment, served, replays, fitted, seed)
    levels, train, heldout = [], [], []
    for which in range(len(replays)):
        level, seen, unseen = _level(deployment, served, told.coefficients, replays, which, holdout, seed)
        levels.append(level)
        train += seen
        heldout += unseen
    return Calibrated(
        told=told,
        train=error_of(train),
        heldout=error_of(heldout),
        levels=tuple(levels),
        valid_range=_range(deployment, served, told.coefficients, replays),
        source="request records",
        dropped=dropped,
    )


def _level(
    deployment: Deployment,
    served: Served,
    coefficients: ServerCoefficients,
    replays: Sequence[Replay],
    which: int,
    holdout: Holdout,
    seed: int,
) -> tuple[LevelError, list[float], list[float]]:
    replay = replays[which]
    known = measured(replay)
    found = predict(deployment, served, replay, coefficients)
    train, heldout = (_ratios(found, known, _rows(replay, each)) for each in (holdout.fits, holdout.holds))
    others = [each for place, each in enumerate(replays) if place != which]
    left_out: dict[str, float] = {}
    if others:
        rows = [_rows(each, everything) for each in others]
        elsewhere = fit_requests(deployment, served, others, rows, seed).coefficients
        left_out = ratios(predict(deployment, served, replay, elsewhere), known)
    level = LevelError(
        load=replay.load,
        train=_error(train),
        heldout=_error(heldout),
        left_out=_error(left_out),
        bias=(heldout or train)["cycle_mean"],
        bias_left_out=left_out.get("cycle_mean", float("nan")),
    )
    return level, list(train.values()), list(heldout.values())


def _error(found: dict[str, float]) -> Error:
    return error_of(list(found.values()))


def _rows(replay: Replay, wanted: Wanted) -> Ints:
    count = len(replay.judged)
    return np.array([place for place in range(count) if wanted(block_of(place, count))], np.int64)


def _ratios(found: Latencies, known: Latencies, rows: Ints) -> dict[str, float]:
    return ratios(found.of(rows), known.of(rows)) if len(rows) >= FEWEST_JUDGED else {}


def _range(
    deployment: Deployment, served: Served, coefficients: ServerCoefficients, replays: Sequence[Replay]
) -> ValidRange:
    """What the simulated runs spanned, which tell steps that request records do not hold."""
    clock = ServerRoofline(deployment, coefficients)
    runs = [served.run(each, clock) for each in replays]
    return range_of([step for run in runs for step in observed_steps(run.requests, run.steps)[0]], deployment)
