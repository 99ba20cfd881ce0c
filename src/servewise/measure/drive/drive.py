"""One process sends a schedule's asks and hands back what came of each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from servewise.measure.drive.deadlines import sweep_interval_s
from servewise.measure.drive.sender import Sender
from servewise.measure.drive.terms import USUAL, Terms
from servewise.measure.exchange import Exchange
from servewise.measure.schedule import Schedule
from servewise.measure.sending import Sending
from servewise.measure.target import Target
from servewise.measure.wire.descriptors import allow_many_sockets


def drive(
    schedule: Schedule,
    target: Target,
    *,
    start_s: float,
    on_end: Callable[[Exchange], None],
    stop: Callable[[], bool] | None = None,
    terms: Terms = USUAL,
) -> Sending:
    """Send until the schedule is finished, ``terms`` end it or ``stop`` says so.

    Nothing new is sent then; what is under way may go on for a while, as ``terms`` say. Each ask that was taken ends in
    exactly one exchange, first told to the schedule, then to ``on_end``, in this thread. ``start_s`` is monotonic time,
    and the zero of all times. An interrupt cancels what is under way and goes on as the interrupt.
    """
    until_s = terms.until_s
    allow_many_sockets()
    sender = Sender(schedule, target, start_s=start_s, on_end=on_end, terms=terms)
    interval_s = sweep_interval_s(target.timeouts)
    ends_s: float | None = None
    began_s = monotonic()
    with _without_collector():
        try:
            while True:
                now_s = sender.now()
                stopped = stop is not None and stop()  # asked while it drains too: it may raise an interrupt
                if ends_s is None and (stopped or (until_s is not None and now_s >= until_s)):
                    ends_s = now_s + terms.drain_s
                if ends_s is None:
                    sender.begin_due(now_s)
                    due_s = schedule.next_due_s()
                    if due_s is not None:
                        sender.lanes.open_ahead(due_s - now_s)
                elif now_s >= ends_s:
                    break
                else:
                    due_s = None
                if not sender.under_way and (ends_s is not None or due_s is None):
                    break
                sender.turn(min(interval_s, (due_s if due_s is not None else now_s + 1) - sender.now()))
            sender.cancel("the run was over before it ended")
        except KeyboardInterrupt:
            sender.cancel("interrupted")
            raise
        finally:
            sender.close()
    return sender.own_error.sending(monotonic() - began_s)


@contextmanager
def _without_collector() -> Iterator[None]:
    """The loop makes no cycles; the collector would only stall it."""
    was_on = gc.isenabled()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
