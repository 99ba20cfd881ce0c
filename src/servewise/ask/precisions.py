"""What fewer bits bring: bytes of weights and cache, and the decode step's time, by precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from servewise.deployment.deployment import Deployment
from servewise.deployment.formats import engine_formats
from servewise.modelspec.kv import kv_bytes_per_token
from servewise.modelspec.weights import weight_bytes
from servewise.plan.clock import clock_for
from servewise.precision import FORMATS, Precision
from servewise.steptime.shape import decode_shape

COMPARED = (("fp8", None), ("int8", None), ("int4", None), (None, "fp8"), ("fp8", "fp8"), ("int4", "fp8"))


def precision_rows(deployment: Deployment, batch: int, context: int, estimator: str | None) -> list[dict[str, Any]]:
    """The deployment as it is and with fewer bits, decoding ``batch`` sequences of ``context`` tokens; no quality.

    Fewer bits of weights bring the activations with them where the engine does so (see ``engine_formats``), unless the
    deployment's activations are not the engine's own choice.
    """
    found = [deployment]
    for weights, kv in COMPARED:
        pair = (FORMATS[weights] if weights else deployment.weights, FORMATS[kv] if kv else deployment.kv)
        if _fewer(pair, deployment):
            found.append(_in_formats(deployment, *pair))
    rows = [_row(each, batch, context, estimator) for each in found]
    return list({row["name"]: row for row in reversed(rows)}.values())[::-1]


def _in_formats(deployment: Deployment, weights: Precision | None, kv: Precision) -> Deployment:
    usual = engine_formats(deployment.model, deployment.accelerator, weights=deployment.weights)
    given = None if deployment.activations == usual.activations else deployment.activations
    chosen = engine_formats(deployment.model, deployment.accelerator, weights=weights, kv=kv, activations=given)
    return replace(deployment, weights=weights, kv=kv, activations=chosen.activations)


def _fewer(pair: tuple[Precision | None, Precision], deployment: Deployment) -> bool:
    weights = pair[0] or deployment.model.weights
    return weights.bits <= deployment.stored_weights.bits and pair[1].bits <= deployment.kv.bits


def _row(deployment: Deployment, batch: int, context: int, estimator: str | None) -> dict[str, Any]:
    clock = clock_for(deployment, estimator)
    step_s = clock.seconds(decode_shape(batch, context, clock.window_tokens))
    return {
        "name": f"{deployment.stored_weights} weights, {deployment.kv} KV",
        "weight_bytes": weight_bytes(deployment.model, deployment.weights),
        "kv_bytes_per_token": kv_bytes_per_token(deployment.model, deployment.kv),
        "step_s": step_s,
        "tokens_per_s": batch / step_s,
        "batch": batch,
    }
