"""A measured run in numbers: latencies of the requests in its steady window, rates over that window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from servewise.measure.bench.window import Window
from servewise.metrics import latency
from servewise.metrics.goodput import attained
from servewise.metrics.sample import rate
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary, summarise
from servewise.records.columns import COMPLETED, RequestColumns, StepColumns
from servewise.records.selection import selected


def window_summary(requests: RequestColumns, window: Window, slo: Slo | None) -> RunSummary:
    """The summary of what lies in ``window``.

    Output tokens are counted as they came (each token's own time within the window, of requests that completed),
    requests and goodput by the end of the window's requests.
    """
    inside = selected(requests, window.rows)
    whole = summarise(inside, StepColumns(), slots=1, slo=slo)
    done = latency.ints(inside.status) == COMPLETED
    ends = np.minimum(latency.floats(inside.end_s)[done], window.end_s) - window.start_s
    counts = {"requests_per_s": (ends, np.ones(len(ends))), "output_tokens_per_s": _tokens(requests, window)}
    if slo is not None:
        counts["goodput_per_s"] = (ends, attained(inside, slo)[done].astype(np.float64))
    found = {name: rate(since, count, window.duration_s) for name, (since, count) in counts.items()}
    values = {name: value for name, (value, _) in found.items()}
    intervals = {name: pair for name, (_, pair) in found.items() if pair is not None}
    return replace(whole, **values, duration_s=window.duration_s, ci95=intervals)  # type: ignore[arg-type]


def _tokens(requests: RequestColumns, window: Window) -> tuple[latency.Floats, latency.Floats]:
    """When each token of a completed request came, from the window's start, of those that came within it."""
    if requests.token_times is None:
        return np.empty(0), np.empty(0)
    per_request = np.diff(latency.ints(requests.token_times.offsets))
    done = np.repeat(latency.ints(requests.status) == COMPLETED, per_request)
    times = latency.floats(requests.token_times.times)[done]
    times = times[(times > window.start_s) & (times <= window.end_s)] - window.start_s
    return times, np.ones(len(times))
