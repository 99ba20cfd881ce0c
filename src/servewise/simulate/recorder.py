"""Writes what the event core does into the records, one append a column."""

from __future__ import annotations

from math import nan

from servewise.batching.batch import Batch
from servewise.batching.sequence import Sequence
from servewise.records.columns import COMPLETED, REJECTED, UNFINISHED, RequestColumns, StepColumns
from servewise.workload.request import Request


class TimedSequence(Sequence):
    """A sequence with the times that its record needs."""

    __slots__ = ("admitted_s", "arrival_s", "first_token_s")

    def __init__(self, request: Request) -> None:
        Sequence.__init__(self, request[0], request[2], request[3], request[4])
        self.arrival_s = request[1]
        self.admitted_s = nan
        self.first_token_s = nan


class Recorder:
    """The request and step records of one run, as they grow."""

    def __init__(self) -> None:
        self.requests = RequestColumns()
        self.steps = StepColumns()
        columns = self.requests
        self._ids = columns.id.append
        self._scheduled = columns.scheduled_s.append
        self._sent = columns.sent_s.append
        self._admitted = columns.admitted_s.append
        self._first = columns.first_token_s.append
        self._end = columns.end_s.append
        self._prompt = columns.prompt_tokens.append
        self._cached = columns.cached_tokens.append
        self._output = columns.output_tokens.append
        self._preemptions = columns.preemptions.append
        self._status = columns.status.append
        steps = self.steps
        self._start = steps.start_s.append
        self._seconds = steps.seconds.append
        self._count = steps.steps.append
        self._decodes = steps.decode_sequences.append
        self._prefill = steps.prefill_tokens.append
        self._running = steps.running.append
        self._waiting = steps.waiting.append
        self._kv = steps.kv_tokens.append
        self._active = steps.active.append

    def ended(self, sequence: TimedSequence, now_s: float, status: int = COMPLETED) -> None:
        """A request reached its end, or the run did (then ``now_s`` is NaN)."""
        self._ids(sequence.serial)
        self._scheduled(sequence.arrival_s)
        self._sent(sequence.arrival_s)
        self._admitted(sequence.admitted_s)
        self._first(sequence.first_token_s)
        self._end(now_s)
        self._prompt(sequence.prompt_tokens)
        self._cached(sequence.first_cached_tokens or 0)
        self._output(sequence.generated)
        self._preemptions(sequence.preemptions)
        self._status(status)

    def rejected(self, sequence: TimedSequence) -> None:
        """A request that can never run within the limits."""
        self.ended(sequence, sequence.arrival_s, REJECTED)

    def unfinished(self, sequence: TimedSequence) -> None:
        """A request that the run's early end cut off."""
        self.ended(sequence, nan, UNFINISHED)

    def stepped(self, batch: Batch, start_s: float, seconds: float, steps: int, prefill: int, waiting: int) -> None:
        """The step ``batch`` ran ``steps`` times from ``start_s``, in ``seconds`` altogether."""
        self._start(start_s)
        self._seconds(seconds)
        self._count(steps)
        self._decodes(batch.decodes)
        self._prefill(prefill)
        self._running(batch.running)
        self._waiting(waiting)
        self._kv(batch.context_tokens)
        self._active(batch.active)
