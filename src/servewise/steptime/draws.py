"""Plausible coefficients around the fitted ones, for intervals that cover the error on a model not fitted on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from servewise.deployment.deployment import Deployment
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.coefficients import AllReduce, Coefficients, DecodeAttention, GemmCoefficients, Knot
from servewise.steptime.lookup import Found, coefficients_for
from servewise.steptime.shipped import Spread


def calibrated_draws(deployment: Deployment, *, seed: int, count: int) -> tuple[CalibratedRoofline, ...]:
    """``count`` estimators whose coefficients are drawn around those of ``deployment``, equal for equal ``seed``."""
    found, rng = coefficients_for(deployment), Random(seed)
    return tuple(CalibratedRoofline(deployment, drawn(found, rng), found.caveats) for _ in range(count))


def drawn(found: Found, rng: Random) -> Coefficients:
    """One draw: a slowness of decode and one of prefill common to all kernels, and each coefficient's own error.

    The common factors are exp(N(0, spread)), the spread being what held-out models showed; the own ones
    exp(N(0, standard error)). An efficiency stays at most 1, so that no draw beats the floor.
    """
    spread = found.spread
    slow = Spread(decode=math.exp(rng.gauss(0.0, spread.decode)), prefill=math.exp(rng.gauss(0.0, spread.prefill)))
    errors = _Errors(found.errors, rng)
    known = found.coefficients
    attention = known.attention
    return replace(
        known,
        gemm=_gemm(known.gemm, slow, errors),
        attention=replace(
            attention,
            decode=_decode(attention.decode, slow.decode, errors, "decode"),
            multi_head=_decode(attention.multi_head, slow.decode, errors, "multi_head"),
            prefill_launch_s=attention.prefill_launch_s * slow.prefill * errors("prefill.prefill_launch_s"),
            flop_efficiency=_share(attention.flop_efficiency, slow.prefill * errors("prefill.flop_efficiency")),
            activation_factor=attention.activation_factor * slow.prefill * errors("prefill.activation_factor"),
        ),
        small=replace(
            known.small,
            layer_s=known.small.layer_s * slow.decode,
            routed_layer_s=known.small.routed_layer_s * slow.decode,
            hidden_bytes=known.small.hidden_bytes * slow.prefill,
            width_bytes=known.small.width_bytes * slow.prefill,
        ),
        all_reduce={
            ranks: AllReduce(tuple(Knot(size, seconds * slow.decode) for size, seconds in curve.knots))
            for ranks, curve in known.all_reduce.items()
        },
        step_overhead_s=known.step_overhead_s * slow.decode,
    )


class _Errors:
    """Factors drawn for each coefficient from its standard error."""

    def __init__(self, errors: Mapping[str, float], rng: Random) -> None:
        self._errors, self._rng = errors, rng

    def __call__(self, name: str) -> float:
        return math.exp(self._rng.gauss(0.0, min(0.5, self._errors.get(name, 0.0))))


def _gemm(known: GemmCoefficients, slow: Spread, errors: _Errors) -> GemmCoefficients:
    return replace(
        known,
        launch_s=known.launch_s * slow.decode * errors("gemm.launch_s"),
        weight_efficiency=_share(known.weight_efficiency, slow.decode * errors("gemm.weight_efficiency")),
        flop_efficiency=_share(known.flop_efficiency, slow.prefill * errors("gemm.flop_efficiency")),
        activation_factor=known.activation_factor * slow.prefill * errors("gemm.activation_factor"),
    )


def _decode(known: DecodeAttention, slow: float, errors: _Errors, part: str) -> DecodeAttention:
    return replace(
        known,
        launch_s=known.launch_s * slow * errors(f"{part}.launch_s"),
        ramp_s=known.ramp_s * slow,
        kv_efficiency=_share(known.kv_efficiency, slow * errors(f"{part}.kv_efficiency")),
    )


def _share(efficiency: float, slower: float) -> float:
    return min(1.0, efficiency / slower)
