"""Runs that are too long for memory: their records leave as they are made, and their figures come from columns on disk.

The figures are those of the same run in memory, to the last bit. Which way a run takes hangs on its length alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from servewise.ask.run import KeptRun
from servewise.ask.serving import Load, is_closed
from servewise.metrics.saturation import Balance
from servewise.metrics.slo import Slo
from servewise.metrics.streamed.digest import Digest
from servewise.metrics.summary import RunSummary
from servewise.records.columns import RequestColumns, StepColumns
from servewise.scratch import Scratch
from servewise.simulate.recorder import Sink
from servewise.workload.conversations import Conversations

LONG = 250_000  # requests; in memory they are some 70 MB of records


def is_long(workload: Load, requests: int) -> bool:
    """Whether a run of so many ``requests`` leaves memory as it goes: of arrivals that do not wait for answers."""
    return requests >= LONG and not is_closed(workload) and not isinstance(workload, Conversations)


class All:
    """Several sinks as one."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks

    def requests(self, requests: RequestColumns) -> None:
        """To each."""
        for sink in self._sinks:
            sink.requests(requests)

    def steps(self, steps: StepColumns) -> None:
        """To each."""
        for sink in self._sinks:
            sink.steps(steps)


class LongRun:
    """A long run's records on their way: ``into`` takes them; then ``figures``.

    ``kept``, if any, gets them too, and ``others`` see them pass.
    """

    def __init__(self, slots: int, slo: Slo | None, kept: KeptRun | None, others: Sequence[Sink] = ()) -> None:
        self._scratch = Scratch()
        self._slots, self._kept = slots, kept
        self._digest = Digest(self._scratch, slots=slots, slo=slo)
        keeping = [] if kept is None else [kept.growing()]
        self.into: Sink = All([self._digest, *keeping, *others])

    def figures(self) -> tuple[RunSummary, Balance]:
        """The summary and the balance of what came; the run is kept whole."""
        if self._kept is not None:
            self._kept.finish_grown(self._slots)
        return self._digest.summary(), self._digest.balance()

    @property
    def last_end_s(self) -> float:
        """When the last request ended [s]; 0 where none did."""
        return self._digest.last_end_s

    def __enter__(self) -> LongRun:
        return self

    def __exit__(self, *of: object) -> None:
        self._scratch.close()
