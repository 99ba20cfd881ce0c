"""When requests arrive: streams of arrival times, each the process that its name says.

A process is drawn in unit time (one arrival per unit on average) and then scaled by the rate, so that the same seed
gives the same pattern at every rate (common random numbers).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.workload import checks

Times = NDArray[np.float64]
CHUNK = 16_384


class Arrivals(Protocol):
    """An open-loop arrival process."""

    @property
    def rate_per_s(self) -> float:
        """Mean arrival rate [requests/s]."""
        ...

    def at_rate(self, rate_per_s: float) -> Arrivals:
        """The same process, its time scaled to that mean rate."""
        ...

    def times(self, rng: np.random.Generator) -> Iterator[Times]:
        """Arrival times [s] in ascending order, in chunks, without end."""
        ...


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent exponential gaps of mean 1 / rate: many users who do not know of each other."""

    rate_per_s: float

    def __post_init__(self) -> None:
        checks.rate(self.rate_per_s)

    def at_rate(self, rate_per_s: float) -> Poisson:
        """The same process at another rate."""
        return replace(self, rate_per_s=rate_per_s)

    def times(self, rng: np.random.Generator) -> Iterator[Times]:
        """Arrival times [s] in chunks."""
        return (chunk / self.rate_per_s for chunk in _unit_poisson(rng))

    def __str__(self) -> str:
        """E.g. ``Poisson 2/s``."""
        return f"Poisson {self.rate_per_s:g}/s"


@dataclass(frozen=True, slots=True)
class Gamma:
    """Independent gamma gaps of mean 1 / rate and coefficient of variation ``cv`` (1: Poisson, above: bursty).

    Shape 1 / cv². ServeGen (arXiv:2505.09999) finds 2 to 16 for the inter-arrival CV of production services.
    """

    rate_per_s: float
    cv: float

    def __post_init__(self) -> None:
        checks.rate(self.rate_per_s)
        checks.positive(self.cv, "the coefficient of variation", most=100)
        if self.cv < 0.01:
            raise InputError(
                f"a coefficient of variation of {self.cv:g} is constant gaps", hint="use constant arrivals"
            )

    def at_rate(self, rate_per_s: float) -> Gamma:
        """The same process at another rate."""
        return replace(self, rate_per_s=rate_per_s)

    def times(self, rng: np.random.Generator) -> Iterator[Times]:
        """Arrival times [s] in chunks."""
        shape = 1 / self.cv**2
        gaps = (rng.gamma(shape, 1 / shape, CHUNK) for _ in itertools.count())
        return (chunk / self.rate_per_s for chunk in _running_sum(gaps))

    def __str__(self) -> str:
        """E.g. ``gamma 2/s, CV 3``."""
        return f"gamma {self.rate_per_s:g}/s, CV {self.cv:g}"


@dataclass(frozen=True, slots=True)
class Constant:
    """One request every 1 / rate seconds exactly, the first after one gap."""

    rate_per_s: float

    def __post_init__(self) -> None:
        checks.rate(self.rate_per_s)

    def at_rate(self, rate_per_s: float) -> Constant:
        """The same process at another rate."""
        return replace(self, rate_per_s=rate_per_s)

    def times(self, rng: np.random.Generator) -> Iterator[Times]:  # noqa: ARG002 (the seam gives one to each process)
        """Arrival times [s] in chunks; nothing is drawn."""
        return (np.arange(start + 1, start + CHUNK + 1) / self.rate_per_s for start in itertools.count(0, CHUNK))

    def __str__(self) -> str:
        """E.g. ``constant 2/s``."""
        return f"constant {self.rate_per_s:g}/s"


@dataclass(frozen=True, slots=True)
class Ramp:
    """Poisson arrivals whose rate goes linearly from ``start_per_s`` to ``end_per_s`` over ``over_s``, then stays.

    Drawn by inverting the cumulative rate L(t) = a t + (b - a) t² / (2 T) (Lewis and Shedler 1979, section 1).
    """

    start_per_s: float
    end_per_s: float
    over_s: float

    def __post_init__(self) -> None:
        checks.rate(self.end_per_s)
        checks.positive(self.over_s, "the length of a ramp", most=checks.MAX_SECONDS, unit="seconds")
        if self.start_per_s != 0:
            checks.rate(self.start_per_s)

    @property
    def rate_per_s(self) -> float:
        """Mean rate over the ramp [requests/s]."""
        return (self.start_per_s + self.end_per_s) / 2

    def at_rate(self, rate_per_s: float) -> Ramp:
        """The same ramp, its time scaled so that the mean rate is ``rate_per_s``."""
        scale = checks.rate(rate_per_s) / self.rate_per_s
        return Ramp(self.start_per_s * scale, self.end_per_s * scale, self.over_s / scale)

    def times(self, rng: np.random.Generator) -> Iterator[Times]:
        """Arrival times [s] in chunks."""
        return (self._when(chunk) for chunk in _unit_poisson(rng))

    def _when(self, arrivals: Times) -> Times:
        """The time at which ``arrivals`` requests are expected to have come, t = 2 L / (a + sqrt(a² + 2 k L))."""
        a, b, over = self.start_per_s, self.end_per_s, self.over_s
        slope, in_ramp = (b - a) / over, self.rate_per_s * over
        within = np.minimum(arrivals, in_ramp)
        rising: Times = 2 * within / (a + np.sqrt(np.maximum(a * a + 2 * slope * within, 0)))
        return rising + np.maximum(arrivals - in_ramp, 0) / b

    def __str__(self) -> str:
        """E.g. ``ramp 1-5/s over 60 s``."""
        return f"ramp {self.start_per_s:g}-{self.end_per_s:g}/s over {self.over_s:g} s"


def _unit_poisson(rng: np.random.Generator) -> Iterator[Times]:
    return _running_sum(rng.standard_exponential(CHUNK) for _ in itertools.count())


def _running_sum(gaps: Iterator[Times]) -> Iterator[Times]:
    """The sums of all gaps so far, never descending."""
    end = 0.0
    for chunk in gaps:
        times = end + np.cumsum(chunk)
        end = float(times[-1])
        yield times
