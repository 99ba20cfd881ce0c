"""Which estimator times a deployment's steps where none is named."""

from __future__ import annotations

from servewise.deployment.deployment import Deployment
from servewise.steptime.api import estimator_for
from servewise.steptime.estimator import Estimator


def kind_for(deployment: Deployment, estimator: str | None) -> str:
    """``estimator``, or where none is named ``ideal`` for the ideal engine and ``calibrated`` for a real one."""
    return estimator or ("ideal" if deployment.engine == "ideal" else "calibrated")


def clock_for(deployment: Deployment, estimator: str | None) -> Estimator:
    """The estimator of that name, or the usual one for the deployment's engine."""
    return estimator_for(deployment, kind_for(deployment, estimator))
