"""Two runs of the same requests: the ratio of each metric, with an interval from the requests' own differences.

Latencies are resampled by blocks of requests in order of schedule, the same blocks for both runs (``bootstrap``); rates
by 20 equal slices of each part's time, the k-th of a with the k-th of b (a token counts where it came, at its request's
end where that is not known). Repeats are laid one after the other, each with its part of the slices. A percentile with
fewer than 5 values beyond it in either run (p95 of 100 requests, p99 of 500) gets no interval: resamples do not reach
further than the sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from servewise.metrics import latency
from servewise.metrics.bootstrap import Floats, Ints, blocks_of, drawn, interval, ratio, resampled
from servewise.metrics.comparison import METRICS, Comparison, compare, judged
from servewise.metrics.goodput import attained
from servewise.metrics.pairing import Matched, Part
from servewise.metrics.sample import MOST_BLOCKS, SHARES
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RATES, RunSummary, summarise
from servewise.records.columns import RequestColumns
from servewise.records.selection import joined, selected

FEWEST_BEYOND = 4.999  # values beyond a percentile (5, and the rounding of a share)
Sample = tuple[Floats, Ints]  # values, and the block of each


def compare_paired(
    matched: Sequence[Matched], summaries: tuple[RunSummary, RunSummary], *, seed: int = 0, slo: Slo | None = None
) -> tuple[Comparison, ...]:
    """Every metric that both runs have, over one or more repeats of two runs a and b.

    Latencies are of all pairs together, rates as the ``summaries`` of a and b have them. ``seed`` draws the resamples.
    ITL is resampled where both know token times; else it, and utilisation, which no request tells, stand as those of
    independent runs.
    """
    ours = joined([selected(each.a.requests, each.pairs.a) for each in matched])
    theirs = joined([selected(each.b.requests, each.pairs.b) for each in matched])
    of_pairs = {row.metric: row for row in compare(summarise(ours), summarise(theirs)) if row.metric not in RATES}
    of_runs = {row.metric: row for row in compare(*summaries)}
    ratios = dict(_latencies(ours, theirs, seed)) | dict(_rates(matched, seed, slo))
    found = of_runs | {metric: row for metric, row in of_pairs.items() if metric in of_runs}
    return tuple(_with(found[metric], ratios) for metric in METRICS if metric in found)


def _with(row: Comparison, ratios: Mapping[str, tuple[Floats, int]]) -> Comparison:
    """``row`` with the interval of its resampled ratios; none where there are too few values beyond a percentile."""
    if row.metric in ratios:
        return judged(row, interval(*ratios[row.metric]))
    sampled = any(each.split("_")[0] == row.metric.split("_")[0] for each in ratios)
    return judged(row, None) if sampled and row.metric not in RATES else row


def _latencies(a: RequestColumns, b: RequestColumns, seed: int) -> Iterator[tuple[str, tuple[Floats, int]]]:
    """Each latency metric with its resampled ratios b / a and the number of blocks."""
    for name, of_a, of_b in _samples(a, b):
        blocks = int(of_a[1].max()) + 1
        draws = drawn(seed, blocks)
        ours, theirs = resampled(*of_a, draws), resampled(*of_b, draws)
        fewest = min(len(of_a[0]), len(of_b[0]))
        told = [at for at in ours if fewest * (1 - SHARES.get(at, 0.5)) >= FEWEST_BEYOND]
        yield from ((f"{name}_{at}", (ratio(theirs[at], ours[at]), blocks)) for at in told)


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


def _rates(matched: Sequence[Matched], seed: int, slo: Slo | None) -> Iterator[tuple[str, tuple[Floats, int]]]:
    number = max(1, MOST_BLOCKS // len(matched))
    ours = [_slices(each.a, number, slo) for each in matched]
    theirs = [_slices(each.b, number, slo) for each in matched]
    draws = drawn(seed, number * len(matched))
    for name in ours[0]:
        of_a, of_b = (np.concatenate([each[name] for each in of]) for of in (ours, theirs))
        yield name, (ratio(draws @ of_b, draws @ of_a), draws.shape[1])


def _slices(part: Part, number: int, slo: Slo | None) -> dict[str, Floats]:
    """What each of ``number`` equal slices of the part's time brought, per second."""
    requests, width_s = part.requests, (part.end_s - part.start_s) / number
    rows = latency.completed_by_schedule(requests)
    ends_s = latency.floats(requests.end_s)[rows]

    def sliced(times_s: Floats, counts: Floats) -> Floats:
        if width_s <= 0:
            return np.full(number, np.nan)
        found: Floats = np.histogram(times_s, number, (part.start_s, part.end_s), weights=counts)[0] / width_s
        return found

    rates = {"requests_per_s": sliced(ends_s, np.ones(len(rows)))}
    rates["output_tokens_per_s"] = sliced(*latency.token_arrivals(requests))
    if slo is not None:
        rates["goodput_per_s"] = sliced(ends_s, attained(requests, slo)[rows].astype(float))
    return rates
