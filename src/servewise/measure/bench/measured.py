"""What one run of one condition gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from servewise.measure.bench.condition import Condition
from servewise.measure.bench.tally import Tally
from servewise.measure.bench.window import Window
from servewise.measure.scrape.timeline import Timeline
from servewise.measure.sending import Sending
from servewise.metrics.saturation import Balance
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary

Ended = Literal["whole", "interrupted", "server", "disk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one run gave. ``ended`` says why it ended, ``reason`` in words where it was not whole."""

    condition: Condition
    repeat: int
    tally: Tally
    window: Window
    summary: RunSummary
    balance: Balance | None
    sending: Sending
    timeline: Timeline
    ended: Ended = "whole"
    reason: str = ""
    directory: Path | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def holds(self, slo: Slo, most_failed: float) -> bool:
        """Whether the run keeps ``slo``: its bounds hold, no more than a share failed, and no queue grew.

        Requests of an open loop that the end of the run cut off had waited too long: they count as failed. A run that
        lost some of its senders did not have its load.
        """
        if any(each.end for each in self.sending.hosts):
            return False
        late = self.tally.cancelled if self.condition.is_open else 0
        requests = self.tally.completed + self.tally.failed + late
        growing = self.balance is not None and self.balance.verdict == "growing"
        failed = (self.tally.failed + late) / requests if requests else 1.0
        return failed <= most_failed and not growing and self.summary.completed > 0 and slo.holds(self.summary)
