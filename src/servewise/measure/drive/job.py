"""What a worker process is told, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from servewise.measure.drive.packing import Packed
from servewise.measure.drive.terms import Terms
from servewise.measure.schedule import Schedule
from servewise.measure.sending import Sending
from servewise.measure.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The first word: from where to import, and how far to set the clock ahead [s] (for tests of several hosts)."""

    path: list[str]
    ahead_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A share of a run: ``drive``'s arguments. ``start_s`` is of the worker's own clock."""

    schedule: Schedule
    target: Target
    start_s: float
    terms: Terms


@dataclass(frozen=True, slots=True)
class Stop:
    """Send nothing new; ``at_once``: and let nothing go on."""

    at_once: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has all that it needs."""


class Taken(NamedTuple):
    """What is known of an ask that was taken, without its body: enough to count it where its worker is lost."""

    serial: int
    scheduled_s: float
    retries: int
    output_tokens: int
    prompt_tokens: int | None
    group: int | None
    turn: int


@dataclass(frozen=True, slots=True)
class Begun:
    """Asks that were taken and have not ended yet."""

    asks: list[Taken]


@dataclass(frozen=True, slots=True)
class Ended:
    """Exchanges that are over."""

    exchanges: list[Packed]


@dataclass(frozen=True, slots=True)
class Done:
    """The share is over; ``fault`` is one line where it failed."""

    sending: Sending
    fault: str = ""
