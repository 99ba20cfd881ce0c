"""Records made from arrays for the tests."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from servewise.metrics.percentiles import Interval, Percentiles
from servewise.metrics.summary import RunSummary
from servewise.records.columns import RequestColumns, StepColumns


def floats(values: ArrayLike) -> array[float]:
    """A column of floats."""
    return array("d", np.ascontiguousarray(values, np.float64).tobytes())


def ints(values: ArrayLike) -> array[int]:
    """A column of whole numbers."""
    return array("q", np.ascontiguousarray(values, np.int64).tobytes())


def requests(
    scheduled: ArrayLike,
    first: ArrayLike,
    end: ArrayLike,
    output: ArrayLike,
    *,
    admitted: ArrayLike | None = None,
    sent: ArrayLike | None = None,
    status: ArrayLike = 0,
) -> RequestColumns:
    """Request records of these times [s] and output tokens."""
    count = len(np.atleast_1d(np.asarray(scheduled)))
    return RequestColumns(
        id=ints(np.arange(count)),
        scheduled_s=floats(scheduled),
        sent_s=floats(scheduled if sent is None else sent),
        admitted_s=floats(np.full(count, np.nan) if admitted is None else admitted),
        first_token_s=floats(first),
        end_s=floats(end),
        prompt_tokens=ints(np.full(count, 10)),
        cached_tokens=ints(np.zeros(count)),
        output_tokens=ints(output),
        preemptions=ints(np.zeros(count)),
        status=ints(np.broadcast_to(status, count)),
    )


def steps(rows: Sequence[tuple[float, float, int, int, int]]) -> StepColumns:
    """Step records of (start_s, seconds, steps, decode_sequences, active)."""
    columns = np.array(rows, float).reshape(-1, 5).T
    nothing = ints(np.zeros(len(rows)))
    return StepColumns(
        start_s=floats(columns[0]),
        seconds=floats(columns[1]),
        steps=ints(columns[2]),
        decode_sequences=ints(columns[3]),
        active=ints(columns[4]),
        prefill_tokens=nothing,
        running=nothing,
        waiting=nothing,
        kv_tokens=nothing,
    )


def percentiles(value: float, half: float | None = None, *, n: int = 1000) -> Percentiles:
    """Percentiles that are all ``value``, with an interval of half-width ``half``."""
    pair: Interval = (value - (half or 0), value + (half or 0))
    names = ("mean", "p50", "p90", "p95", "p99")
    ci95 = dict.fromkeys(names, pair) if half is not None else {}
    return Percentiles(mean=value, p50=value, p90=value, p95=value, p99=value, n=n, ci95=ci95)


def summary(
    latency: Percentiles, *, goodput: float | None = None, completed: int = 100, rate: float = 2.0, used: float = 0.5
) -> RunSummary:
    """A summary whose latencies are all ``latency``."""
    return RunSummary(
        ttft=latency,
        tpot=latency,
        itl=latency,
        e2e=latency,
        utilisation=used,
        requests_per_s=rate,
        output_tokens_per_s=100 * rate,
        goodput_per_s=goodput,
        completed=completed,
        rejected=1,
        unfinished=2,
        preemptions=3,
        duration_s=50.0,
    )
