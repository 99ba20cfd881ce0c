"""The study's clock: every step costs one second, whatever it holds, so that latencies read in steps."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.caveats import Caveat
from servewise.steptime.estimator import Line, StepTime
from servewise.steptime.shape import StepShape

_LINES = (Line(1.0, 0.0, 0.0),)


@dataclass(frozen=True, slots=True)
class UnitStep:
    """An estimator by which each step takes 1 s."""

    name: str = "unit step"
    window_tokens: int | None = None
    caveats: tuple[Caveat, ...] = ()

    def seconds(self, shape: StepShape) -> float:  # noqa: ARG002 - the seam of all estimators
        """1 s."""
        return 1.0

    def step(self, shape: StepShape) -> StepTime:  # noqa: ARG002
        """1 s, all of it overhead: there is no hardware behind it."""
        return StepTime(0.0, 0.0, 1.0, 0.0, 1.0, 0.0, "overhead")

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:  # noqa: ARG002
        """One flat line."""
        return _LINES
