"""Which server overheads a deployment takes: those of its accelerator and engine, or the nearest; said in caveats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.hardware.accelerator import Accelerator
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.lookup import BORROWED, CURE, NEAREST_ENGINE, coefficients_for
from servewise.steptime.served import ServedRoofline
from servewise.steptime.server_overheads import ServerOverheads, with_launches

FILE = "server_overheads.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was fitted of the servers of one engine on one accelerator.

    ``models`` served, in ``points`` runs; ``spread``: standard deviation of the logarithm of predicted / measured time
    per token on runs that a fit of the same kind had not seen.
    """

    accelerator: str
    engine: str
    models: str
    points: int
    overheads: ServerOverheads
    spread: float


@lru_cache(maxsize=1)
def shipped_overheads() -> tuple[Entry, ...]:
    """The package's own, read once."""
    document = json.loads(files("servewise.steptime").joinpath(FILE).read_text("utf-8"))
    return tuple(Entry(**{**each, "overheads": ServerOverheads(**each["overheads"])}) for each in document["entries"])


def served_roofline(deployment: Deployment) -> ServedRoofline:
    """The calibrated kernels of ``deployment`` inside the server of the nearest that were measured."""
    found = coefficients_for(deployment)
    entry, caveats = nearest(deployment.accelerator, deployment.engine.partition("-")[0], shipped_overheads())
    known = with_launches(found.coefficients, entry.overheads.launch_scale)
    kernels = CalibratedRoofline(deployment, known, found.caveats)
    return ServedRoofline(
        kernels,
        entry.overheads,
        name=f"served ({entry.accelerator}, {entry.engine})",
        caveats=kernels.caveats + caveats,
        spread=entry.spread,
    )


def nearest(accelerator: Accelerator, engine: str, entries: Sequence[Entry]) -> tuple[Entry, tuple[Caveat, ...]]:
    """The entry of that accelerator and engine; else of its kin, else of the engine's first, else of another engine."""
    runs = [each for each in entries if each.engine == engine] or [e for e in entries if e.engine == NEAREST_ENGINE]
    names = (accelerator.name, accelerator.kin)
    entry = next((each for name in names for each in runs if each.accelerator == name), runs[0])
    borrowed = (accelerator.name, engine) != (entry.accelerator, entry.engine)
    return entry, (_borrowed(accelerator, engine, entry),) if borrowed else ()


def _borrowed(accelerator: Accelerator, engine: str, entry: Entry) -> Caveat:
    message = (
        f"no server of {engine} on {accelerator.name} was measured: overheads of {entry.engine} on {entry.accelerator}"
    )
    return Caveat(BORROWED, message, CURE)
