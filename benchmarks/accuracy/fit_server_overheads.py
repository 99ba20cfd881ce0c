"""Fit what servers add to their kernels, split by split: python -m benchmarks.accuracy.fit_server_overheads.

Writes benchmarks/data/e2e_measured/fits.json (what each split's fit found, for ``e2e_measured`` to judge) and the
coefficients that ship, src/servewise/steptime/server_overheads.json. Takes some minutes on two cores.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from multiprocessing import Pool
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.e2e_measured.points import DATA, Point, points
from benchmarks.accuracy.e2e_measured.serve import serve
from benchmarks.accuracy.e2e_measured.settings import SHAPES, settings_of
from benchmarks.accuracy.e2e_measured.splits import SHIPPED, SPLITS, telling
from servewise.calibrate.descent import descend
from servewise.steptime.server_overheads import BOUNDS, ServerOverheads

COMMAND = "python -m benchmarks.accuracy.fit_server_overheads"
FITS = DATA / "fits.json"
SOURCE = "NVIDIA AIConfigurator's accuracy set and InferenceX, https://github.com/ai-dynamo/aiconfigurator, Apache-2.0"
PACKAGE = Path(__file__).parents[2] / "src" / "servewise" / "steptime" / "server_overheads.json"

# Where the descent begins, and the size of each coefficient there: steps are taken in these units.
UNITS = {
    "step_s": 1e-3,
    "sequence_s": 1e-4,
    "prompt_layer_s": 1e-3,
    "prompt_slowness": 1.0,
    "launch_scale": 1.0,
    "request_s": 1e-2,
}
START = ServerOverheads(step_s=3e-4, sequence_s=1e-5, prompt_layer_s=4e-4, prompt_slowness=1.1, request_s=5e-3)
# How far each may plausibly lie from where the descent begins (a standard deviation): few points of one range of load
# cannot tell all of them apart, and what they cannot tell should not run away.
PLAUSIBLE = {
    "step_s": 5e-4,
    "sequence_s": 3e-5,
    "prompt_layer_s": 5e-4,
    "prompt_slowness": 0.15,
    "launch_scale": 0.15,
    "request_s": 5e-3,
}
PRIOR_WEIGHT = 0.05  # one such deviation costs as much as one point's error of 5%
TELLERS = ("step_s", "prompt_slowness", "request_s")  # fitted beside each shape that is tried
MOST_POINTS = 18  # of one fit
LIGHT = 64  # the highest concurrency of a fit's points: those above take most of the time
ROUNDS = 5  # of the descent
BENT = 0.2  # an error of this size (natural logarithm) counts 0.7 of itself, a far larger one no more than 1
TTFT_WEIGHT = 0.5

Floats = NDArray[np.float64]
Shapes = Mapping[str, str]


def bent(predicted: float, measured: float) -> float:
    """The logarithm of their ratio, outliers bounded by ``BENT``."""
    error = math.log(predicted / measured)
    return error / math.sqrt(1.0 + (error / BENT) ** 2)


def residuals(chosen: Sequence[Point], shapes: Shapes, overheads: ServerOverheads) -> Floats:
    """Two for each point: TTFT's, at its weight, and TPOT's."""
    found = []
    for point in chosen:
        served = serve(point, settings_of(point, shapes), overheads)
        found += [TTFT_WEIGHT * bent(served.ttft_s, point.ttft_s), bent(served.tpot_s, point.tpot_s)]
    return np.array(found)


def fit(chosen: Sequence[Point], shapes: Shapes, names: Sequence[str]) -> tuple[ServerOverheads, float]:
    """The overheads (those in ``names``, the others as at the start) that fit best, and the sum of squares left."""
    start = START.to_dict()

    def at(values: Floats) -> ServerOverheads:
        moved = {name: float(value) * UNITS[name] for name, value in zip(names, values, strict=True)}
        return ServerOverheads(**{**start, **moved})

    def errors(values: Floats) -> Floats:
        moved = [(v * UNITS[name] - start[name]) / PLAUSIBLE[name] for name, v in zip(names, values, strict=True)]
        return np.concatenate([residuals(chosen, shapes, at(values)), PRIOR_WEIGHT * np.array(moved)])

    low, high = (np.array([BOUNDS[name][end] / UNITS[name] for name in names]) for end in (0, 1))
    begin = np.array([start[name] / UNITS[name] for name in names])
    target = np.zeros(2 * len(chosen) + len(names))
    found = descend(errors, target, np.ones(len(target)), begin, (low, high), rounds=ROUNDS, step=2e-2)
    return at(found.point), float(np.square(found.values[: -len(names)]).sum())


def spaced(chosen: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most that many of the light ones, evenly over the list."""
    light = [each for each in chosen if each.concurrency <= LIGHT]
    return [light[round(place)] for place in np.linspace(0, len(light) - 1, min(most, len(light)))]


def shape_of(family: str) -> tuple[str, str, dict[str, float]]:
    """The shape that fits the family's telling points best, and what each left."""
    chosen = [each for each in points() if each.family == family and telling(each)]
    left = {name: fit(spaced(chosen, 12), {family: name}, TELLERS)[1] for name in SHAPES}
    return family, min(left, key=lambda name: left[name]), left


def _one(job: tuple[tuple[Point, ...], Shapes]) -> dict[str, Any]:
    seen, shapes = job
    overheads, left = fit(seen, shapes, tuple(UNITS))
    return {"points": len(seen), "rms": round(math.sqrt(left / (2 * len(seen))), 4), "overheads": _written(overheads)}


def families_untold() -> list[str]:
    """Families with unpublished settings that have telling points."""
    return list(dict.fromkeys(each.family for each in points() if telling(each)))


def kin(shapes: dict[str, str]) -> dict[str, str]:
    """A family without telling points takes the shape of one of its engine and model, or else of its engine."""
    for point in points():
        if not point.public and point.family not in shapes:
            alike = [name for name in shapes if f" {point.engine} " in name]
            same = [name for name in alike if point.model.startswith(name.split()[3])]
            shapes[point.family] = shapes[(same or alike)[0]]
    return shapes


def everything() -> dict[str, Any]:
    """Shapes, and the fit of each split and of what ships; splits that see the same points share one."""
    seen = {each.name: tuple(spaced(each.fitted())) for each in SPLITS}
    seen |= {" ".join(key): tuple(spaced([p for p in points() if which(p)])) for key, which in SHIPPED.items()}
    with Pool(2) as pool:
        told = pool.map(shape_of, families_untold(), chunksize=1)
        shapes = kin({family: shape for family, shape, _ in told})
        different = list(dict.fromkeys(seen.values()))
        fitted = dict(zip(different, pool.map(_one, [(each, shapes) for each in different], chunksize=1), strict=True))
    return {
        "command": COMMAND,
        "date": datetime.now(UTC).date().isoformat(),
        "shapes": shapes,
        "shapes_tried": {family: _rounded(left) for family, _, left in told},
        "fits": {name: fitted[chosen] for name, chosen in seen.items()},
    }


def _written(overheads: ServerOverheads) -> dict[str, float]:
    return {name: float(f"{value:.5g}") for name, value in overheads.to_dict().items()}


def _rounded(left: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in sorted(left.items(), key=lambda each: each[1])}


def shipped(found: Mapping[str, Any]) -> dict[str, Any]:
    """What ships: each accelerator's and engine's own fit, and how far such fits were off on points held out.

    A spread is at least that of all: one model's two ranges of load say little about the next model.
    """
    entries, of_all = [], held_spread(found, lambda _: True)
    for (accelerator, engine), which in SHIPPED.items():
        seen = [each for each in points() if which(each)]
        fitted = found["fits"][f"{accelerator} {engine}"]
        entries.append(
            {
                "accelerator": accelerator,
                "engine": engine,
                "models": ", ".join(dict.fromkeys(f"{each.model} {each.dtype}" for each in seen)),
                "points": fitted["points"],
                "overheads": fitted["overheads"],
                "spread": round(max(of_all, held_spread(found, which)), 4),
            }
        )
    about = {"command": COMMAND, "date": found["date"], "data": "benchmarks/data/e2e_measured", "source": SOURCE}
    return {"schema": "servewise.server-overheads/1", "fit": about, "entries": entries}


def held_spread(found: Mapping[str, Any], which: Callable[[Point], bool]) -> float:
    """Standard deviation of log(predicted / measured TPOT) of held-out points, robust: 1.4826 x the median size."""
    errors = []
    for split in SPLITS:
        overheads = ServerOverheads(**found["fits"][split.name]["overheads"])
        for point in split.held() if split.by != "accelerator" else ():
            if which(point):
                served = serve(point, settings_of(point, found["shapes"]), overheads)
                errors.append(abs(math.log(served.tpot_s / point.tpot_s)))
    return 1.4826 * median(errors)


def main() -> None:
    """Fit, print, write."""
    found = everything()
    FITS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    for name, each in found["fits"].items():
        sys.stdout.write(f"{name:66} rms {each['rms']:.3f} of {each['points']:3}  {each['overheads']}\n")
    for family, shape in found["shapes"].items():
        sys.stdout.write(f"{family:52} {shape}\n")
    PACKAGE.write_text(json.dumps(shipped(found), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
