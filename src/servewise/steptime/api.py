"""The room's door: an estimator for a deployment, by name or from a file of measured steps."""

from __future__ import annotations

from pathlib import Path

from servewise.deployment.deployment import Deployment
from servewise.errors import UnknownName
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.calibration_file import load_calibration
from servewise.steptime.estimator import Estimator
from servewise.steptime.ideal import ideal_roofline
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.served_lookup import served_roofline
from servewise.steptime.table import TableEstimator
from servewise.steptime.table_file import load_table

KINDS = ("calibrated", "served", "ideal")


def estimator_for(deployment: Deployment, kind: str = "calibrated") -> Estimator:
    """The estimator called ``kind`` for ``deployment``: ``calibrated``, ``served``, ``ideal``, or a file.

    ``calibrated`` is the kernels alone, ``served`` the kernels inside a server as those that were measured.

    A .toml file is a calibration (``servewise calibrate``), a .csv or .json file a table of measured steps.

    Raises UnknownName for another name, InputError for a file that is neither.
    """
    if kind == "ideal":
        return ideal_roofline(deployment)
    if kind == "calibrated":
        return calibrated_roofline(deployment)
    if kind == "served":
        return served_roofline(deployment)
    if Path(kind).suffix == ".toml":
        return load_calibration(kind).estimator(deployment, Path(kind).name)
    if Path(kind).suffix or any(mark in kind for mark in "/\\"):
        return TableEstimator(load_table(kind), calibrated_roofline(deployment), Path(kind).name)
    raise UnknownName(
        "estimator",
        kind,
        KINDS,
        hint=f"one of {', '.join(KINDS)}, or a file: .toml of calibrate, .csv or .json of steps",
    )


def calibrated_roofline(deployment: Deployment) -> CalibratedRoofline:
    """The calibrated roofline of ``deployment`` with the shipped coefficients."""
    found = coefficients_for(deployment)
    return CalibratedRoofline(deployment, found.coefficients, found.caveats)
