"""A moment of a run, to be looked at: what every server and every request did between two times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """Request ``serial`` was in ``phase`` (queue, prefill, decode, preempted, transfer) at server ``replica`` [s]."""

    serial: int
    phase: str
    start_s: float
    end_s: float
    replica: int


class StepSpan(NamedTuple):
    """A step, or a jump over equal ones, of server ``replica`` [s]; the counts are those of a step record."""

    start_s: float
    end_s: float
    replica: int
    decodes: int
    prefill_tokens: int
    running: int
    waiting: int
    kv_tokens: int


@dataclass(slots=True)
class Moment:
    """What was seen between ``from_s`` and ``to_s``: whatever overlaps it, whole."""

    from_s: float
    to_s: float
    spans: list[Span] = field(default_factory=list)
    steps: list[StepSpan] = field(default_factory=list)

    def overlaps(self, start_s: float, end_s: float) -> bool:
        """Whether any of that time lies in the window."""
        return start_s < self.to_s and end_s > self.from_s
