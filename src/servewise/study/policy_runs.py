"""Runs of the study's batching simulation in the product's simulator: one step is the unit of time.

The study does not name its output lengths. A lognormal of median 58 and sigma 0.77 in whole tokens gives its four
figures of them within the sampling error of 1,500 requests (d² = 4.2 on 4 degrees of freedom, p = 0.38), while gamma,
Weibull, exponential and inverse Gaussian do not (p < 0.01 at their best): ``benchmarks/accuracy/study_lengths.py``.
That a run has some 1,500 requests is read off its overloaded rows, whose latencies grow with the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.metrics.student import t_quantile
from servewise.metrics.summary import summarise
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.study.published import SLOTS, WINDOW_STEPS
from servewise.study.row import Interval
from servewise.study.transformer import Floats
from servewise.workload.arrivals import Poisson
from servewise.workload.lengths import Fixed, Lognormal
from servewise.workload.request import Request
from servewise.workload.synthetic import Synthetic

OUTPUT_LENGTHS = Lognormal(median=58, sigma=0.77)
REQUESTS = 1500
LEVEL = 0.99

POLICIES: dict[str, Policy] = {
    "static": Static(batch=SLOTS),
    "dynamic": Dynamic(batch=SLOTS, window_s=WINDOW_STEPS),
    "continuous": Continuous(max_sequences=SLOTS, max_batched_tokens=SLOTS),
}


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run's latency percentiles [steps], utilisation over busy steps, and throughput [requests per step]."""

    p50: float
    p95: float
    utilisation: float
    throughput: float


def arrivals(rate: float, seed: int, requests: int = REQUESTS) -> list[Request]:
    """The study's requests: Poisson at ``rate`` a step, a prompt of one token (prompts cost nothing there)."""
    workload = Synthetic(arrivals=Poisson(rate), prompt_lengths=Fixed(1), output_lengths=OUTPUT_LENGTHS, count=requests)
    return list(workload.requests(seed))


def all_at_once(seed: int, requests: int = REQUESTS) -> list[Request]:
    """The same requests, all there from the start: a server that is never short of work."""
    return [each._replace(arrival_s=0.0) for each in arrivals(1.0, seed, requests)]


def run(policy: Policy, requests: Iterable[Request]) -> RunFigures:
    """One run to the end of its last request."""
    done = simulate(requests, policy, UnitStep())
    found = summarise(done.requests, done.steps, slots=done.slots)
    return RunFigures(found.e2e.p50, found.e2e.p95, found.utilisation, found.requests_per_s)


def length_figures(seed: int) -> Floats:
    """Mean output and mean longest of 8 consecutive requests of one run [tokens]."""
    lengths = np.array([each.output_tokens for each in arrivals(1.0, seed)])
    batches = lengths[: len(lengths) // SLOTS * SLOTS].reshape(-1, SLOTS)
    return np.array((lengths.mean(), batches.max(axis=1).mean()))


def prediction_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Where one more run lies with that chance: geometric mean x or / exp(t s sqrt(1 + 1/n)), s of the logarithms.

    Latencies of runs are skewed to the right, their logarithms hardly. Student's t with n - 1 degrees of freedom.
    """
    logs = [math.log(value) for value in values]
    reach = t_quantile(0.5 + level / 2, len(logs) - 1) * stdev(logs) * math.sqrt(1 + 1 / len(logs))
    return math.exp(fmean(logs) - reach), math.exp(fmean(logs) + reach)


def mean_interval(values: Sequence[float]) -> Interval:
    """The 95% confidence interval of the mean over runs."""
    reach = t_quantile(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - reach, fmean(values) + reach
