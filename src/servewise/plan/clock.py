"""Which estimator times a deployment's steps where none is named, and the estimators of a plan's candidates kept."""

from __future__ import annotations

from dataclasses import replace

from servewise.deployment.deployment import Deployment, Limits
from servewise.steptime.api import estimator_for
from servewise.steptime.estimator import Estimator

MOST_KEPT = 64


def kind_for(deployment: Deployment, estimator: str | None) -> str:
    """``estimator``, or where none is named ``ideal`` for the ideal engine and ``calibrated`` for a real one."""
    return estimator or ("ideal" if deployment.engine == "ideal" else "calibrated")


def clock_for(deployment: Deployment, estimator: str | None) -> Estimator:
    """The estimator of that name, or the usual one for the deployment's engine."""
    return estimator_for(deployment, kind_for(deployment, estimator))


class Clocks:
    """The last estimators that were made, by deployment: one that is used again knows its steps' times already.

    Of a deployment's limits an estimator reads only whether CUDA graphs are captured, so those that differ in slots,
    tokens a step or share of memory have one in common.
    """

    def __init__(self, estimator: str | None) -> None:
        self._estimator = estimator
        self._kept: dict[tuple[object, ...], tuple[Deployment, Estimator]] = {}

    def of(self, deployment: Deployment) -> Estimator:
        """The estimator of ``deployment``."""
        timed = replace(deployment, limits=Limits(cuda_graphs=deployment.limits.cuda_graphs))
        key = (timed.accelerator.name, timed.parallelism, timed.weights, timed.kv, timed.activations, timed.engine)
        known = self._kept.pop(key, None)
        if known is None or known[0] != timed:
            known = (timed, clock_for(timed, self._estimator))
        self._kept[key] = known
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return known[1]
