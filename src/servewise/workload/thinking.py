"""How long a user thinks between an answer and what is said next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.workload import checks

MOST_CV = 100


@dataclass(frozen=True, slots=True)
class Thinking:
    """Independent gamma pauses of mean ``mean_s`` and coefficient of variation ``cv``.

    0: always the mean; 1: exponential. The shape is 1 / cv^2.
    """

    mean_s: float = 0.0
    cv: float = 0.0

    def __post_init__(self) -> None:
        if self.mean_s != 0:
            checks.positive(self.mean_s, "the time to think", most=checks.MAX_SECONDS, unit="seconds")
        if self.cv != 0:
            checks.positive(self.cv, "the coefficient of variation of the time to think", most=MOST_CV)
            if self.cv < 0.01:
                raise InputError(f"a coefficient of variation of {self.cv:g} is a constant time", hint="use 0")

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """``count`` pauses [s]; as many draws are taken whatever they are."""
        if not (self.mean_s and self.cv):
            return np.full(count, self.mean_s)
        shape = 1 / self.cv**2
        return rng.gamma(shape, self.mean_s / shape, count)

    def __str__(self) -> str:
        """E.g. ``think 20 s, CV 1``; empty where nobody thinks."""
        if not self.mean_s:
            return ""
        return f"think {self.mean_s:g} s" + (f", CV {self.cv:g}" if self.cv else "")


NO_THINKING = Thinking()
