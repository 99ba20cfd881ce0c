"""What of a run is matched: logarithms of means and percentiles of its latencies, measured and simulated alike."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from servewise.calibrate.replay import Replay
from servewise.metrics.latency import floats, ints, itl_of_steps
from servewise.metrics.sample import quantile
from servewise.simulate.run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NAMES = ("ttft_mean", "ttft_p25", "ttft_p50", "ttft_p95", "tpot_mean", "tpot_p50", "tpot_p95", "cycle_mean")
GAPS = ("itl_p50", "itl_p90")
JUDGED = ("ttft_p50", "ttft_p95", "tpot_p50", "tpot_p95", "cycle_mean")
LEAST_S = 1e-6
WIDER = 1.2
BLOCKS, RESAMPLINGS = 20, 200


@dataclass(frozen=True, slots=True)
class Latencies:
    """The latencies of the requests that count [s], by sending; ``gaps`` and their weights of the whole run.

    ``long`` marks requests of longer prompts than the median, where prompts are of several lengths: what they take more
    than the others tells the cost of a prompt's tokens from that of a request.
    """

    ttft: Floats
    tpot: Floats
    cycle: Floats
    long: NDArray[np.bool_]
    gaps: Floats
    weights: Floats

    def of(self, rows: Ints) -> Latencies:
        """Of some of the requests."""
        return replace(self, ttft=self.ttft[rows], tpot=self.tpot[rows], cycle=self.cycle[rows], long=self.long[rows])

    def at_gaps(self, rows: Ints) -> Latencies:
        """With some of the gaps."""
        return replace(self, gaps=self.gaps[rows], weights=self.weights[rows])


def measured(replay: Replay) -> Latencies:
    """As they were."""
    ones = np.ones(len(replay.gaps_s))
    return Latencies(replay.ttft_s, replay.tpot_s, replay.cycle_s, _long(replay), replay.gaps_s, ones)


def _long(replay: Replay) -> NDArray[np.bool_]:
    """Which judged prompts are longer than the median; none where the longer half is not a fifth longer on average."""
    prompts = np.array([replay.requests[each].prompt_tokens for each in replay.judged.tolist()], np.float64)
    longer = prompts > np.median(prompts)
    told = longer.any() and prompts[longer].mean() > WIDER * prompts[~longer].mean()
    return np.asarray(longer if told else np.zeros(len(prompts), bool))


def simulated(replay: Replay, run: Run) -> Latencies:
    """As the simulator has them, of the same requests."""
    requests = run.requests
    order = np.argsort(ints(requests.id))[replay.judged]
    sent, first, ended = (floats(each)[order] for each in (requests.sent_s, requests.first_token_s, requests.end_s))
    outputs = ints(requests.output_tokens)[order]
    after = np.where(outputs > 1, outputs - 1, np.nan)
    gaps, weights = itl_of_steps(run.steps) if len(replay.gaps_s) else (np.empty(0), np.empty(0))
    kept = weights > 0
    return Latencies(first - sent, (ended - first) / after, ended - sent, _long(replay), gaps[kept], weights[kept])


def statistics(found: Latencies) -> Floats:
    """Logarithms of NAMES; then means by short and long prompts, then of GAPS, where they are known."""
    tpot = found.tpot[np.isfinite(found.tpot)]
    tpot = tpot if len(tpot) else np.full(1, LEAST_S)
    values = [
        found.ttft.mean(),
        *np.quantile(found.ttft, (0.25, 0.5, 0.95)),
        tpot.mean(),
        *np.quantile(tpot, (0.5, 0.95)),
        found.cycle.mean(),
    ]
    if found.long.any() and not found.long.all():
        for each in (found.ttft, found.cycle):
            values += [each[~found.long].mean(), each[found.long].mean()]
    if len(found.gaps):
        order = np.argsort(found.gaps)
        ranked, mass = found.gaps[order], np.cumsum(found.weights[order])
        values += [quantile(ranked, mass, share) for share in (0.5, 0.9)]
    return np.log(np.maximum(np.array(values, np.float64), LEAST_S))


def resampled(found: Latencies, rng: np.random.Generator) -> Floats:
    """The statistics of RESAMPLINGS resamplings of blocks of neighbouring requests, one a row."""
    count = len(found.ttft)
    blocks = np.array_split(np.arange(count), max(2, min(BLOCKS, count // 3)))
    gap_blocks = np.array_split(np.arange(len(found.gaps)), len(blocks))
    rows, size = [], len(statistics(found))
    for _ in range(RESAMPLINGS):
        taken = rng.integers(0, len(blocks), len(blocks))
        some = found.of(np.concatenate([blocks[each] for each in taken]))
        gaps = np.concatenate([gap_blocks[each] for each in taken])
        rows.append(_alike(statistics(some.at_gaps(gaps)), size))
    return np.array(rows)


def _alike(values: Floats, size: int) -> Floats:
    """``values``, or where a resampling lacks short or long prompts as many numbers, the missing ones the mean's."""
    return values if len(values) == size else np.resize(values, size)


def ratios(predicted: Latencies, known: Latencies) -> dict[str, float]:
    """Predicted over measured, of each of JUDGED."""
    pairs = zip(NAMES, statistics(predicted), statistics(known), strict=False)
    return {name: float(np.exp(one - other)) for name, one, other in pairs if name in JUDGED}
