"""Two runs of the same requests: the ratio of each metric, with an interval from the requests' own differences.

Latencies are resampled by blocks of requests in order of schedule, the same blocks for both runs (``bootstrap``); rates
by 20 equal slices of each part's time, the k-th of a with the k-th of b (a token counts where it came, at its request's
end where that is not known). A percentile that a run has too few requests for, so that its own interval has no upper
end, gets no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from servewise.metrics import latency
from servewise.metrics.bootstrap import Floats, Ints, blocks_of, drawn, interval, ratio, resampled
from servewise.metrics.comparison import Comparison, compare, judged
from servewise.metrics.goodput import attained
from servewise.metrics.pairing import Pairs, Part
from servewise.metrics.sample import MOST_BLOCKS
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RATES, RunSummary, summarise
from servewise.records.columns import RequestColumns
from servewise.records.selection import selected

Sample = tuple[Floats, Ints]  # values, and the block of each


def compare_paired(
    a: Part, b: Part, pairs: Pairs, summaries: tuple[RunSummary, RunSummary], *, seed: int = 0, slo: Slo | None = None
) -> tuple[Comparison, ...]:
    """Every metric that both runs have: latencies of the pairs, rates of the parts as their ``summaries`` have them.

    ``seed`` draws the resamples. ITL is resampled where both know token times; utilisation, which no request tells,
    is left out.
    """
    ours, theirs = selected(a.requests, pairs.a), selected(b.requests, pairs.b)
    latencies = [row for row in compare(summarise(ours), summarise(theirs)) if row.metric not in RATES]
    rates = [row for row in compare(*summaries) if row.metric in RATES and row.metric != "utilisation"]
    ratios = dict(_latencies(ours, theirs, seed)) | dict(_rates(a, b, seed, slo))
    return tuple(_with(row, ratios) for row in (*latencies, *rates))


def _with(row: Comparison, ratios: Mapping[str, tuple[Floats, int]]) -> Comparison:
    """``row`` with the interval of its resampled ratios; as it stands where it could not be resampled."""
    if row.metric not in ratios:
        return row
    bounded = row.ci95 is not None and math.isfinite(row.ci95[1])
    return judged(row, interval(*ratios[row.metric]) if bounded else None)


def _latencies(a: RequestColumns, b: RequestColumns, seed: int) -> Iterator[tuple[str, tuple[Floats, int]]]:
    """Each latency metric with its resampled ratios b / a and the number of blocks."""
    for name, of_a, of_b in _samples(a, b):
        blocks = int(of_a[1].max()) + 1
        draws = drawn(seed, blocks)
        ours, theirs = resampled(*of_a, draws), resampled(*of_b, draws)
        yield from ((f"{name}_{at}", (ratio(theirs[at], ours[at]), blocks)) for at in ours)


def _samples(a: RequestColumns, b: RequestColumns) -> Iterator[tuple[str, Sample, Sample]]:
    """Each latency of both runs: one value a pair, or one a gap."""
    for name, of in (("ttft", latency.ttft), ("tpot", latency.tpot), ("e2e", latency.e2e)):
        values_a, values_b = of(a), of(b)
        both = np.isfinite(values_a) & np.isfinite(values_b)
        if both.any():
            block = blocks_of(int(both.sum()))
            yield name, (values_a[both], block), (values_b[both], block)
    (gaps_a, rows_a), (gaps_b, rows_b) = latency.gaps_by_row(a), latency.gaps_by_row(b)
    if len(gaps_a) and len(gaps_b):
        block = blocks_of(len(a))
        yield "itl", (gaps_a, block[rows_a]), (gaps_b, block[rows_b])


def _rates(a: Part, b: Part, seed: int, slo: Slo | None) -> Iterator[tuple[str, tuple[Floats, int]]]:
    draws = drawn(seed, MOST_BLOCKS)
    ours, theirs = _slices(a, slo), _slices(b, slo)
    for name in ours:
        yield name, (ratio(draws @ theirs[name], draws @ ours[name]), MOST_BLOCKS)


def _slices(part: Part, slo: Slo | None) -> dict[str, Floats]:
    """What each of 20 equal slices of the part's time brought, per second."""
    requests, width_s = part.requests, (part.end_s - part.start_s) / MOST_BLOCKS
    rows = latency.completed_by_schedule(requests)
    ends_s = latency.floats(requests.end_s)[rows]

    def sliced(times_s: Floats, counts: Floats) -> Floats:
        brought = np.histogram(times_s, MOST_BLOCKS, (part.start_s, part.end_s), weights=counts)[0]
        found: Floats = brought / width_s if width_s > 0 else np.full(MOST_BLOCKS, np.nan)
        return found

    rates = {"requests_per_s": sliced(ends_s, np.ones(len(rows)))}
    rates["output_tokens_per_s"] = sliced(*latency.token_arrivals(requests))
    if slo is not None:
        rates["goodput_per_s"] = sliced(ends_s, attained(requests, slo)[rows].astype(float))
    return rates
