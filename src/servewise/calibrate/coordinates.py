"""Coefficients as a vector to fit: efficiencies by the logarithm of their slowness, overheads and ramp as they add."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.deployment.deployment import Deployment
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.server_coefficients import BOUNDS, COEFFICIENTS, EFFICIENCIES, ServerCoefficients

Floats = NDArray[np.float64]
# What is believed before any data, as standard deviations.
EFFICIENCY_SPREAD = 1.5  # of the logarithm: within a factor 20 of the usual
OVERHEAD_SPREADS = {"step_s": 0.5, "sequence_s": 0.1}  # in usual steps
RAMP_SPREAD = 8.0  # of the square root: half of the efficiency at 64 rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinates:
    """All coefficients as a vector, with what is believed of them before any data: N(``usual``, ``spreads``²).

    An efficiency e is log(1 / e), from 0; seconds are in units of ``unit_s`` (a usual step); ``ramp_tokens`` is its
    square root, since times grow with that. ``request_spread_s`` is how long a request may take outside of steps. The
    belief is wide: it decides only what the data leave open.
    """

    usual: ServerCoefficients
    unit_s: float
    request_spread_s: float = 1.0

    def vector(self, coefficients: ServerCoefficients) -> Floats:
        """The vector of ``coefficients``."""
        return np.array([self.place(name, value) for name, value in coefficients.to_dict().items()])

    def coefficients(self, vector: Floats) -> ServerCoefficients:
        """The coefficients at ``vector``, moved into their bounds."""
        pairs = zip(COEFFICIENTS, vector, strict=True)
        return ServerCoefficients(**{name: self.value(name, float(each)) for name, each in pairs})

    def place(self, name: str, value: float) -> float:
        """The coordinate of ``value``."""
        if name in EFFICIENCIES:
            return -math.log(value)
        return math.sqrt(value) if name == "ramp_tokens" else value / self.unit_s

    def value(self, name: str, place: float) -> float:
        """The coefficient at a coordinate."""
        low, high = BOUNDS[name]
        if name in EFFICIENCIES:
            value = math.exp(-place)
        else:
            value = max(place, 0.0) ** 2 if name == "ramp_tokens" else place * self.unit_s
        return min(max(value, low), high)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The lowest and the highest of each coordinate."""
        pairs = [sorted(self.place(name, each) for each in BOUNDS[name]) for name in COEFFICIENTS]
        low, high = zip(*pairs, strict=True)
        return np.array(low), np.array(high)

    @property
    def spreads(self) -> Floats:
        """The belief's standard deviations."""
        spreads = OVERHEAD_SPREADS | {"ramp_tokens": RAMP_SPREAD, "request_s": self.request_spread_s / self.unit_s}
        spreads |= dict.fromkeys(EFFICIENCIES, EFFICIENCY_SPREAD)
        return np.array([spreads[name] for name in COEFFICIENTS])

    def interval(self, name: str, places: Sequence[float]) -> tuple[float, float]:
        """Two coordinates as an interval of the coefficient."""
        low, high = sorted(self.value(name, each) for each in places)
        return low, high


def usual(deployment: Deployment) -> ServerCoefficients:
    """What is believed of a server before any data: the shipped efficiencies of its accelerator or kin, no overhead."""
    known = coefficients_for(deployment).coefficients
    return ServerCoefficients(
        weight_efficiency=known.gemm.weight_efficiency,
        flop_efficiency=known.gemm.flop_efficiency,
        kv_efficiency=known.attention.decode.kv_efficiency,
        attention_efficiency=known.attention.flop_efficiency,
    )
