"""A run in numbers: the row that ``simulate``, ``bench`` and ``plan`` print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.metrics import latency
from servewise.metrics.goodput import attained
from servewise.metrics.percentiles import Interval, Percentiles
from servewise.metrics.phases import Phases, mean_phases, pooled
from servewise.metrics.replicas import interval_from_zero, mean, pool_percentiles
from servewise.metrics.sample import EMPTY, Estimate, percentiles, rate, weighted_mean
from servewise.metrics.slo import Slo
from servewise.records.columns import COMPLETED, REJECTED, UNFINISHED, RequestColumns, StepColumns
from servewise.records.selection import lanes_of

Ints = NDArray[np.int64]
LATENCIES = ("ttft", "tpot", "itl", "e2e")
RATES = ("utilisation", "requests_per_s", "output_tokens_per_s", "goodput_per_s")
TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens")
COUNTS = ("completed", "rejected", "unfinished", "failed", "preemptions", *TOKENS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Latencies of completed requests [s], rates [per second] and counts of one run, or of several pooled.

    ``ttft`` counts from the schedule, ``ttft_from_sent`` from the moment the request left the client: what lies between
    is the client's own lateness. ``duration_s`` runs from the first scheduled request to the last end; the rates are
    completions and their tokens over it. ``utilisation`` is active sequence-steps over slots x busy steps.
    ``goodput_per_s`` counts the requests that meet the SLO, None without one. ``failed`` holds the cancelled too.
    ``ci95`` has the intervals of the rates and the utilisation, by name. The token counts are of completed requests;
    ``tokens_per_event`` is how many a client got at once, None where the run was not seen from outside. ``phases``:
    where the time went on average, None where only a client saw it. ``prefix_hit_rate`` is the share of the prompt
    tokens that a prefix cache had when the request was first admitted, None where nothing completed.
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
    failed: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    tokens_per_event: float | None = None
    ttft_from_sent: Percentiles = EMPTY
    phases: Phases | None = None
    ci95: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def prefix_hit_rate(self) -> float | None:
        """Cached over prompt tokens."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


def summarise(
    requests: RequestColumns, steps: StepColumns | None = None, *, slots: int = 1, slo: Slo | None = None
) -> RunSummary:
    """The summary of one run, intervals from its own spread over blocks of time (see ``sample``).

    A run seen from outside has no ``steps``: its utilisation is not known (NaN), whatever ``slots``.
    """
    steps = StepColumns() if steps is None else steps
    rows = latency.completed_by_schedule(requests)
    duration = duration_s(requests)
    rates = _rates(requests, rows, duration, slo)
    used, used_ci95 = utilisation(steps, slots)
    status = np.bincount(latency.ints(requests.status), minlength=UNFINISHED + 1)
    gaps = latency.tpot(requests)[rows]
    ttft = percentiles(latency.ttft(requests)[rows])
    late = not np.array_equal(latency.floats(requests.sent_s), latency.floats(requests.scheduled_s))
    return RunSummary(
        ttft=ttft,
        ttft_from_sent=percentiles(latency.ttft_from_sent(requests)[rows]) if late else ttft,
        tpot=percentiles(gaps[~np.isnan(gaps)]),
        itl=itl(requests, steps),
        e2e=percentiles(latency.e2e(requests)[rows]),
        utilisation=used,
        requests_per_s=rates["requests_per_s"][0],
        output_tokens_per_s=rates["output_tokens_per_s"][0],
        goodput_per_s=rates["goodput_per_s"][0] if slo else None,
        completed=len(rows),
        rejected=int(status[REJECTED]),
        unfinished=int(status[UNFINISHED]),
        failed=int(status.sum() - status[COMPLETED] - status[REJECTED] - status[UNFINISHED]),
        preemptions=int(latency.ints(requests.preemptions).sum()),
        **{name: int(latency.ints(getattr(requests, name))[rows].sum()) for name in TOKENS},
        tokens_per_event=latency.tokens_per_event(requests) if latency.from_outside(requests) else None,
        duration_s=duration,
        phases=mean_phases(requests, rows),
        ci95={name: pair for name, (_, pair) in (rates | {"utilisation": (used, used_ci95)}).items() if pair},
    )


def _rates(requests: RequestColumns, rows: Ints, duration: float, slo: Slo | None) -> dict[str, Estimate]:
    """What completed, its tokens, and what met the SLO, per second."""
    tokens = latency.ints(requests.output_tokens)[rows].astype(np.float64)
    counts = {"requests_per_s": np.ones(len(rows)), "output_tokens_per_s": tokens}
    if slo is not None:
        counts["goodput_per_s"] = attained(requests, slo)[rows].astype(np.float64)
    since_s = latency.floats(requests.end_s)[rows] - latency.floats(requests.scheduled_s).min(initial=np.inf)
    return {name: rate(since_s, count, duration) for name, count in counts.items()}


def duration_s(requests: RequestColumns) -> float:
    """From the first scheduled request to the last end [s]; 0 where nothing ended."""
    ends = latency.floats(requests.end_s)
    ends = ends[~np.isnan(ends)]
    return float(ends.max() - latency.floats(requests.scheduled_s).min()) if len(ends) else 0.0


def itl(requests: RequestColumns, steps: StepColumns) -> Percentiles:
    """Inter-token latency over all tokens [s]: from the tokens' own times where they are known, else from the steps."""
    if requests.token_times is not None:
        return percentiles(latency.itl_of_tokens(requests))
    return percentiles(*latency.itl_of_steps(steps))


def utilisation(steps: StepColumns, slots: int) -> Estimate:
    """Active sequence-steps over slots x busy steps, with its interval: the share of slots that made a token.

    A static batch's finished sequences hold a slot and make none. Of a server with several lanes each has its even
    share of the slots. Where ``active`` was not recorded, the decoding sequences stand for it. NaN without steps.
    """
    if slots < 1:
        raise InputError(f"utilisation needs at least one slot, not {slots}")
    active = latency.ints(steps.active if len(steps.active) == len(steps) else steps.decode_sequences)
    return weighted_mean(active / slots * lanes_of(steps), latency.ints(steps.steps).astype(np.float64))


def pool(summaries: Sequence[RunSummary]) -> RunSummary:
    """The mean summary of replicas (seeds, coefficient draws), intervals from their spread (Student's t).

    Counts are summed, rates, utilisation and durations are means. One summary keeps its own intervals.
    """
    if not summaries:
        raise InputError("there are no runs to pool")
    if len(summaries) == 1:
        return summaries[0]
    values = {name: _column(summaries, name) for name in RATES}
    names = (*LATENCIES, "ttft_from_sent")
    latencies = {name: pool_percentiles([getattr(each, name) for each in summaries]) for name in names}
    counts = {name: sum(getattr(each, name) for each in summaries) for name in COUNTS}
    middle = {name: mean(column) if column else None for name, column in values.items()}
    found = {name: pair for name, column in values.items() if (pair := interval_from_zero(column)) is not None}
    duration = mean([each.duration_s for each in summaries])
    events = mean([each.tokens_per_event for each in summaries if each.tokens_per_event is not None])
    return RunSummary(
        **latencies,  # type: ignore[arg-type]
        **counts,
        **middle,  # type: ignore[arg-type]
        tokens_per_event=None if math.isnan(events) else events,
        ci95=found,
        duration_s=duration,
        phases=pooled([(each.phases, each.completed) for each in summaries if each.phases is not None]),
    )


def _column(summaries: Sequence[RunSummary], name: str) -> list[float]:
    return [float(value) for each in summaries if (value := getattr(each, name)) is not None]
