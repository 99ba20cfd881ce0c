"""The room's door: an estimator for a deployment, by name or from a file of measured steps."""

from __future__ import annotations

from servewise.deployment.deployment import Deployment
from servewise.errors import UnknownName
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.estimator import Estimator
from servewise.steptime.ideal import ideal_roofline
from servewise.steptime.lookup import coefficients_for

KINDS = ("calibrated", "ideal")


def estimator_for(deployment: Deployment, kind: str = "calibrated") -> Estimator:
    """The estimator called ``kind`` for ``deployment``: ``calibrated`` or ``ideal``.

    Raises UnknownName for another name.
    """
    if kind == "ideal":
        return ideal_roofline(deployment)
    if kind == "calibrated":
        return calibrated_roofline(deployment)
    raise UnknownName("estimator", kind, KINDS, hint=f"one of {', '.join(KINDS)}, or a file of measured steps")


def calibrated_roofline(deployment: Deployment) -> CalibratedRoofline:
    """The calibrated roofline of ``deployment`` with the shipped coefficients."""
    found = coefficients_for(deployment)
    return CalibratedRoofline(deployment, found.coefficients, found.caveats)
