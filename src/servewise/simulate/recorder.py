"""Writes what the event core does into the records, one append a column."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Protocol

from servewise.records.columns import RequestColumns, StepColumns
from servewise.records.selection import PHASES, PLAIN
from servewise.simulate.timed import TimedSequence

if TYPE_CHECKING:
    from servewise.simulate.replica import Replica

FLUSH_ROWS = 4096
LEAVE_ROWS = 65_536


class Sink(Protocol):
    """What takes the records of a run that is too long for memory, a part at a time, in their order."""

    def requests(self, requests: RequestColumns) -> None:
        """The next requests that ended."""
        ...

    def steps(self, steps: StepColumns) -> None:
        """The next steps."""
        ...


class Recorder:
    """The request and step records of one run, as they grow; several replicas may write into one.

    Rows are gathered and turned into columns some thousands at a time, at half the cost of an append a column. With
    ``into`` they leave memory whenever there are ``leave_rows`` of them, and with ``leave`` the last.
    """

    def __init__(self, into: Sink | None = None, leave_rows: int = LEAVE_ROWS) -> None:
        self._into, self._leave_rows = into, leave_rows
        self._requests = RequestColumns()
        self._steps = StepColumns()
        self._request_rows: list[tuple[float, ...]] = []
        self._step_rows: list[tuple[float, ...]] = []
        self._left_s = 0.0  # the last end among those that left
        self.stepped = self._step_rows.append

    def ended(self, sequence: TimedSequence, now_s: float, status: int, replica: Replica) -> None:
        """A request reached its end, or the run did (then ``now_s`` is NaN).

        The client sees tokens ``replica.outside_s`` after the step that made them.
        """
        arrival_s, outside_s = sequence.arrival_s, replica.outside_s
        self._request_rows.append(
            (
                sequence.serial,
                arrival_s,
                arrival_s,
                sequence.admitted_s,
                sequence.first_token_s + outside_s,
                now_s + outside_s,
                sequence.prompt_tokens,
                sequence.first_cached_tokens or 0,
                sequence.generated,
                sequence.preemptions,
                status,
                replica.number,
                sequence.prefill_s,
                sequence.preempted_s,
                sequence.transfer_s,
            )
        )

    def flush_if_large(self) -> None:
        """Turn rows into columns once there are some thousands."""
        if len(self._request_rows) >= FLUSH_ROWS or len(self._step_rows) >= FLUSH_ROWS:
            self._flush()

    def _flush(self) -> None:
        self._flush_rows()
        if self._into is not None:
            self._leave(self._into, self._leave_rows)

    def _flush_rows(self) -> None:
        for rows, columns in ((self._request_rows, self._requests), (self._step_rows, self._steps)):
            for name, values in zip(_columns(columns), zip(*rows, strict=True), strict=False):
                getattr(columns, name).fromlist(list(values))  # half the time of extend
            rows.clear()

    def leave(self) -> None:
        """All that is still here goes where the others went."""
        self._flush()
        if self._into is not None:
            self._leave(self._into, 1)

    @property
    def last_end_s(self) -> float:
        """When the last request ended [s]; 0 where none did."""
        self._flush_rows()
        here = max((each for each in self._requests.end_s if not isnan(each)), default=0.0)
        return max(here, self._left_s)

    def _leave(self, into: Sink, least: int) -> None:
        if len(self._requests) >= least:
            self._left_s = max(self._left_s, self.last_end_s)
            into.requests(self._requests)
            self._requests = RequestColumns()
        if len(self._steps) >= least:
            into.steps(self._steps)
            self._steps = StepColumns()

    @property
    def requests(self) -> RequestColumns:
        """The request records so far."""
        self._flush()
        return self._requests

    @property
    def steps(self) -> StepColumns:
        """The step records so far."""
        self._flush()
        return self._steps


def _columns(columns: RequestColumns | StepColumns) -> tuple[str, ...]:
    return REQUEST_ROW if isinstance(columns, RequestColumns) else STEP_ROW


REQUEST_ROW = (*PLAIN, *PHASES)
STEP_ROW = (
    "start_s",
    "seconds",
    "steps",
    "decode_sequences",
    "prefill_tokens",
    "running",
    "waiting",
    "kv_tokens",
    "active",
    "replica",
    "lane",
)
