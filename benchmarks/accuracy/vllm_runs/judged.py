"""A run simulated, and how far each request's times are from the measured ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.accuracy.vllm_runs.runs import BLOCK_TOKENS, Floats, VllmRun
from servewise.plan.clock import clock_for
from servewise.simulate.run import Run, simulate
from servewise.steptime.estimator import Estimator


@dataclass(frozen=True)
class Times:
    """When each request, in order of arrival, came, got its first token and its last [s]."""

    arrival_s: Floats
    first_s: Floats
    last_s: Floats
    output_tokens: Floats

    @property
    def e2e_s(self) -> Floats:
        """From arrival to the last token [s]."""
        return self.last_s - self.arrival_s

    @property
    def ttft_s(self) -> Floats:
        """From arrival to the first token [s]."""
        return self.first_s - self.arrival_s

    @property
    def tpot_s(self) -> Floats:
        """Between tokens [s]; NaN for a single one."""
        after = np.where(self.output_tokens > 1, self.output_tokens - 1, np.nan)
        return (self.last_s - self.first_s) / after

    def part(self, rows: slice) -> Times:
        """Those of some requests."""
        return Times(self.arrival_s[rows], self.first_s[rows], self.last_s[rows], self.output_tokens[rows])


@dataclass(frozen=True)
class Errors:
    """Relative errors: ``e2e``, ``tpot`` medians of the requests' absolute ones, ``e2e_bias`` signed.

    ``ttft_p50`` is of the median, ``throughput`` of the output tokens/s until the last end.
    """

    e2e: float
    e2e_bias: float
    tpot: float
    ttft_p50: float
    throughput: float

    def to_json(self) -> dict[str, float]:
        """By name, to four digits."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def measured(run: VllmRun) -> Times:
    """The run's own times."""
    columns = ("arrival_s", "first_token_s", "last_token_s", "output_toks")
    return Times(*(run.column(name) for name in columns))


def simulated(run: VllmRun, blocks: int, clock: Estimator | None = None) -> Run:
    """The run's requests at the simulated server, by the shipped clock unless another is given."""
    return simulate(
        run.requests(),
        run.policy(),
        clock or clock_for(run.deployment, None),
        blocks=blocks,
        block_tokens=BLOCK_TOKENS,
        hash_block_tokens=BLOCK_TOKENS,
    )


def times_of(found: Run) -> Times:
    """The times of a simulated run."""
    requests = found.requests
    order = np.argsort(np.array(requests.id))
    columns = (requests.sent_s, requests.first_token_s, requests.end_s, requests.output_tokens)
    return Times(*(np.array(each, np.float64)[order] for each in columns))


def errors(found: Times, known: Times) -> Errors:
    """How far ``found`` is from ``known``."""
    e2e = found.e2e_s / known.e2e_s - 1.0
    return Errors(
        e2e=float(np.median(np.abs(e2e))),
        e2e_bias=float(np.median(e2e)),
        tpot=float(np.nanmedian(np.abs(found.tpot_s / known.tpot_s - 1.0))),
        ttft_p50=float(np.median(found.ttft_s) / np.median(known.ttft_s) - 1.0),
        throughput=float(known.last_s.max() / found.last_s.max() - 1.0),
    )


@dataclass(frozen=True)
class SentBack:
    """Requests that were admitted and do not run, seen once a second: their mean, and the sum of their increases.

    What the runs keep of preemptions: a request that comes and goes within a second is not seen.
    """

    mean: float
    increases: int


def sent_back(run: VllmRun) -> SentBack:
    """As measured."""
    at = np.array([row["t"] for row in run.watched])
    running = np.array([row["running"] for row in run.watched])
    return _sent_back(at, run.column("scheduled_s"), run.column("last_token_s"), running)


def sent_back_in(run: VllmRun, found: Run) -> SentBack:
    """As simulated, seen at the same times."""
    at = np.array([row["t"] for row in run.watched])
    step = np.maximum(np.searchsorted(np.array(found.steps.start_s), at, side="right") - 1, 0)
    running = np.array(found.steps.running, np.float64)[step]
    return _sent_back(at, np.array(found.requests.admitted_s), np.array(found.requests.end_s), running)


def _sent_back(at: Floats, admitted: Floats, ended: Floats, running: Floats) -> SentBack:
    begun, gone = (np.searchsorted(np.sort(each), at, side="right") for each in (admitted, ended))
    out = np.maximum(begun - gone - running, 0.0)
    return SentBack(mean=round(float(out.mean()), 2), increases=int(np.clip(np.diff(out), 0, None).sum()))
