"""How long users think between an answer and what they say next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from servewise.workload import checks
from servewise.workload.streams import stream


@dataclass(frozen=True, slots=True)
class Thinking:
    """``mean_s`` every time, or exponential with that mean, drawn for each request from the seed's own stream."""

    mean_s: float = 0.0
    spread: Literal["constant", "exponential"] = "constant"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mean_s != 0:
            checks.positive(self.mean_s, "the time to think", most=checks.MAX_SECONDS, unit="seconds")

    def after(self, serial: int) -> float:
        """The pause after the answer to request ``serial`` [s]."""
        if self.spread == "constant" or self.mean_s == 0:
            return self.mean_s
        return float(stream(self.seed, "thinking", serial).exponential(self.mean_s))


NO_THINKING = Thinking()
