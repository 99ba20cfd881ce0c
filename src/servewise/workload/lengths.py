"""How long prompts and answers are: distributions of whole tokens, at least 1, with their means in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.workload import checks

Tokens = NDArray[np.int64]
NORMAL = NormalDist()


class Lengths(Protocol):
    """A distribution of lengths in tokens."""

    @property
    def mean(self) -> float:
        """Mean length [tokens]."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> Tokens:
        """``count`` independent lengths."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every length is ``tokens``."""

    tokens: int

    def __post_init__(self) -> None:
        checks.tokens(self.tokens, "a fixed length")

    @property
    def mean(self) -> float:
        """Mean length [tokens]."""
        return float(self.tokens)

    def draw(self, rng: np.random.Generator, count: int) -> Tokens:  # noqa: ARG002 (the seam gives one to each)
        """``count`` times the same length."""
        return np.full(count, self.tokens, np.int64)

    def __str__(self) -> str:
        """E.g. ``512``."""
        return f"{self.tokens}"


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every whole length from ``low`` to ``high``, both included, is equally likely."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if checks.tokens(self.low, "the lower length") > checks.tokens(self.high, "the upper length"):
            raise InputError(f"a uniform length from {self.low} to {self.high} is empty", hint="give low <= high")

    @property
    def mean(self) -> float:
        """Mean length [tokens]."""
        return (self.low + self.high) / 2

    def draw(self, rng: np.random.Generator, count: int) -> Tokens:
        """``count`` independent lengths."""
        return rng.integers(self.low, self.high, count, np.int64, endpoint=True)

    def __str__(self) -> str:
        """E.g. ``100-200``."""
        return f"{self.low}-{self.high}"


@dataclass(frozen=True, slots=True)
class Lognormal:
    """exp(N(ln ``median``, ``sigma``)) in whole tokens, at least 1; what is above ``cap`` is cut to it."""

    median: float
    sigma: float
    cap: int | None = None

    def __post_init__(self) -> None:
        checks.positive(self.median, "a lognormal median", most=checks.MAX_TOKENS, unit="tokens")
        if not 0 <= self.sigma <= 5:
            raise InputError(f"a lognormal sigma must be from 0 to 5, not {checks.shown(self.sigma)}")
        if self.cap is not None:
            checks.tokens(self.cap, "a lognormal cap")

    @classmethod
    def from_mean(cls, median: float, mean: float, *, cap: int | None = None) -> Lognormal:
        """The lognormal of that median and mean (before rounding and cap): sigma = sqrt(2 ln(mean / median))."""
        checks.positive(median, "a lognormal median", most=checks.MAX_TOKENS, unit="tokens")
        if not median <= mean <= checks.MAX_TOKENS:
            raise InputError(f"a lognormal mean ({mean:g}) is not below its median ({median:g})")
        return cls(median, math.sqrt(2 * math.log(mean / median)), cap)

    @classmethod
    def from_percentile(cls, median: float, value: float, *, share: float = 0.95, cap: int | None = None) -> Lognormal:
        """The lognormal of that median whose ``share`` quantile (0.95: p95) is ``value``, before rounding and cap."""
        checks.positive(median, "a lognormal median", most=checks.MAX_TOKENS, unit="tokens")
        if not 0.5 < share < 1 or not median <= value <= checks.MAX_TOKENS:
            raise InputError(f"a lognormal's p{share * 100:g} ({value:g}) is not below its median ({median:g})")
        return cls(median, math.log(value / median) / NORMAL.inv_cdf(share), cap)

    @property
    def mean(self) -> float:
        """Mean length [tokens], before rounding: E[min(X, cap)] = m exp(s²/2) F(d - s) + cap (1 - F(d)).

        d = ln(cap / m) / s, F the normal distribution. Rounding and the floor of 1 move it by less than half a token.
        """
        whole = self.median * math.exp(self.sigma**2 / 2)
        if self.cap is None:
            return whole
        if self.sigma == 0:
            return min(self.median, self.cap)
        d = math.log(self.cap / self.median) / self.sigma
        return whole * NORMAL.cdf(d - self.sigma) + self.cap * (1 - NORMAL.cdf(d))

    def draw(self, rng: np.random.Generator, count: int) -> Tokens:
        """``count`` independent lengths."""
        raw = self.median * np.exp(self.sigma * rng.standard_normal(count))
        return np.clip(np.rint(raw), 1, self.cap or checks.MAX_TOKENS).astype(np.int64)

    def __str__(self) -> str:
        """E.g. ``lognormal(median 58, sigma 0.77)``."""
        cap = f", cap {self.cap}" if self.cap else ""
        return f"lognormal(median {self.median:g}, sigma {self.sigma:.3g}{cap})"


@dataclass(frozen=True, slots=True)
class Empirical:
    """Lengths drawn with replacement from observed ``values``; prompt and output drawn so are independent."""

    values: Sequence[int]
    source: str = "given values"
    _array: Tokens = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.values) == 0:
            raise InputError("an empirical length needs at least one observed value", where=self.source)
        for value in self.values:
            checks.tokens(value, "an observed length", where=self.source)
        object.__setattr__(self, "_array", np.array(self.values, np.int64))

    @property
    def mean(self) -> float:
        """Mean length [tokens]."""
        return float(self._array.mean())

    def draw(self, rng: np.random.Generator, count: int) -> Tokens:
        """``count`` independent draws."""
        return self._array[rng.integers(0, len(self._array), count)]

    def __str__(self) -> str:
        """E.g. ``empirical(19366 of azure-conv)``."""
        return f"empirical({len(self.values)} of {self.source})"
