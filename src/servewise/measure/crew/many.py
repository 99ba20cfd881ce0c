"""Several processes send a schedule's asks, where one would not keep up."""

from __future__ import annotations

from collections.abc import Callable

from servewise.measure.crew.crew import Crew
from servewise.measure.crew.here import Here
from servewise.measure.drive.terms import USUAL, Terms
from servewise.measure.exchange import Exchange
from servewise.measure.schedule import Schedule
from servewise.measure.sending import Sending
from servewise.measure.target import Target


def drive_many(
    schedule: Schedule,
    target: Target,
    *,
    workers: int,
    start_s: float,
    on_end: Callable[[Exchange], None],
    stop: Callable[[], bool] | None = None,
    terms: Terms = USUAL,
) -> Sending:
    """``drive`` over ``workers`` processes that are started for it; a ``Crew`` keeps them for several runs.

    They take a fraction of a second to start: ``start_s`` should lie beyond that (a start that has passed is noted).
    RunFailed where none is left; an interrupt ends all, hands over what they had and goes on as the interrupt.
    """
    with Crew([Here(workers)]) as crew:
        return crew.drive(schedule, target, start_s=start_s, on_end=on_end, stop=stop, terms=terms)
