"""What a worker process is told, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.measure.drive.packing import Packed
from servewise.measure.schedule import Schedule
from servewise.measure.sending import Sending
from servewise.measure.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A share of a run: ``drive``'s arguments."""

    schedule: Schedule
    target: Target
    start_s: float
    until_s: float | None
    drain_s: float
    keep_text: bool
    keep_logprobs: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Send nothing new; ``at_once``: and let nothing go on."""

    at_once: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has all that it needs; ``cpu_s`` is what it took to start."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Exchanges that are over."""

    exchanges: list[Packed]


@dataclass(frozen=True, slots=True)
class Done:
    """The share is over; ``fault`` is one line where it failed."""

    sending: Sending
    fault: str = ""
