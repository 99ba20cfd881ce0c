"""A run in numbers: the row that ``simulate``, ``bench`` and ``plan`` print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servewise.metrics.percentiles import Percentiles
from servewise.metrics.slo import Slo
from servewise.records.columns import RequestColumns, StepColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Latencies of completed requests [s], rates [per second] and counts of one run, or of several pooled.

    ``utilisation`` is active sequence-steps over slots x busy steps. ``goodput_per_s`` counts the requests that
    meet the SLO, None without one.
    """

    ttft: Percentiles
    tpot: Percentiles
    itl: Percentiles
    e2e: Percentiles
    utilisation: float
    requests_per_s: float
    output_tokens_per_s: float
    goodput_per_s: float | None
    completed: int
    rejected: int
    unfinished: int
    preemptions: int
    duration_s: float


def summarise(requests: RequestColumns, steps: StepColumns, *, slots: int, slo: Slo | None = None) -> RunSummary:
    """The summary of one run, intervals from its own spread (batch means over time)."""
    raise NotImplementedError


def pool(summaries: Sequence[RunSummary]) -> RunSummary:
    """The mean summary of replicas (seeds, coefficient draws), intervals from their spread (Student's t)."""
    raise NotImplementedError
