"""The seam between arithmetic and simulation: an estimator gives the time of a step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from servewise.caveats import Caveat
from servewise.steptime.shape import StepShape


class Line(NamedTuple):
    """A bound on a decode step's time, linear in the KV tokens read.

    seconds = ``base_s`` + ``per_context_token_s`` x decode_context_tokens + ``per_windowed_token_s`` x
    decode_windowed_tokens.
    """

    base_s: float
    per_context_token_s: float
    per_windowed_token_s: float = 0.0


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of one step and its parts [s].

    ``compute_s`` and ``memory_s`` are the arithmetic's and the memory's own times (they overlap); ``overhead_s``
    and ``communication_s`` come on top. ``step_s`` is the step; ``floor_s`` is max(bytes / bandwidth, FLOPs / peak),
    which no step beats; ``bound`` is compute, memory, communication or overhead, whichever is largest.
    """

    compute_s: float
    memory_s: float
    overhead_s: float
    communication_s: float
    step_s: float
    floor_s: float
    bound: str


def lasting(device: StepTime, seconds: float) -> StepTime:
    """``device`` within a step of ``seconds`` [s]: what the step takes beyond it is overhead, never below 0."""
    overhead = max(0.0, seconds - device.step_s + device.overhead_s)
    parts = {
        "compute": device.compute_s,
        "memory": device.memory_s,
        "communication": device.communication_s,
        "overhead": overhead,
    }
    bound = max(parts, key=lambda each: parts[each])
    return replace(device, overhead_s=overhead, step_s=seconds, bound=bound)


class Estimator(Protocol):
    """Time of a step of one deployment's replica.

    Contract, held by property tests: ``seconds(shape) == step(shape).step_s``; never below ``floor_s``; for a pure
    decode step equal to the largest of ``decode_lines(batch)`` at its context; never falls when tokens are added.
    """

    @property
    def name(self) -> str:
        """How results name it: ``ideal``, ``calibrated (h100-sxm, vllm 0.24)``..."""
        ...

    @property
    def window_tokens(self) -> int | None:
        """The model's window, for the windowed fields of StepShape."""
        ...

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What a reader must know: borrowed coefficients, a range left."""
        ...

    def seconds(self, shape: StepShape) -> float:
        """The step's time [s]."""
        ...

    def step(self, shape: StepShape) -> StepTime:
        """The step's time with its parts."""
        ...

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """The lines whose maximum is the time of a pure decode step of ``sequences`` sequences."""
        ...
