"""A measured run beside the simulator's: the same requests, the same policy, the clock fitted to other steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from servewise.batching.policies import Continuous, Policy
from servewise.metrics.comparison import value_of
from servewise.metrics.saturation import trend
from servewise.metrics.summary import RunSummary, summarise
from servewise.probe.policies.drive import BLOCK_TOKENS, Driven
from servewise.probe.policies.fitted_steps import FittedSteps, slowness
from servewise.simulate.run import Run, simulate
from servewise.steptime.estimator import Estimator
from servewise.workload.request import Request
from servewise.workload.synthetic import Synthetic

JUDGED = ("e2e_p50", "e2e_p95")
SHOWN = ("ttft_p50", "ttft_p95", "tpot_p50", "tpot_p95", "e2e_p50", "e2e_p95", "utilisation", "output_tokens_per_s")
LONG_RUN = 4_000  # requests whose backlog tells whether a rate is below saturation
LONG_SEED, BURST_SEED = 7_000_001, 7_000_002
BURST = 1_000
BURST_RATE = 1e6  # all of them at once, as far as a server can tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One policy at one rate. ``ratios`` are predicted / measured; ``stable``: the simulator keeps up in a long run.

    ``slowness``: how many times as long the run's steps took as its calibrations say; ``at_speed`` is the prediction
    with the clock slowed by it. It tells a machine whose speed changed from a simulator that is wrong, and is not what
    ``within`` judges.
    """

    policy: str
    rate_per_s: float
    measured: RunSummary
    predicted: RunSummary
    at_speed: RunSummary
    slowness: float
    stable: bool
    waited: float | None

    @property
    def ratios(self) -> dict[str, float]:
        """Predicted over measured, of each of SHOWN."""
        return _ratios(self.predicted, self.measured)

    @property
    def ratios_at_speed(self) -> dict[str, float]:
        """The same at the speed that the machine had during the run."""
        return _ratios(self.at_speed, self.measured)

    def within(self, share: float) -> bool:
        """Whether p50 and p95 end to end are both predicted within ``share`` of what was measured."""
        return _all_within(self.ratios, share)

    def within_at_speed(self, share: float) -> bool:
        """The same at the speed that the machine had during the run."""
        return _all_within(self.ratios_at_speed, share)


def _all_within(ratios: Mapping[str, float], share: float) -> bool:
    return all(abs(ratios[name] - 1.0) <= share for name in JUDGED)


def _ratios(predicted: RunSummary, measured: RunSummary) -> dict[str, float]:
    return {name: _ratio(value_of(predicted, name)[0], value_of(measured, name)[0]) for name in SHOWN}


def _ratio(predicted: float, measured: float) -> float:
    return predicted / measured if measured else float(predicted == measured) or float("inf")


def predict(requests: Sequence[Request], policy: Policy, clock: Estimator, blocks: int) -> Run:
    """The simulator's run of ``requests``."""
    return simulate(requests, policy, clock, blocks=blocks, block_tokens=BLOCK_TOKENS)


def compare_runs(
    policy: Policy,
    rate_per_s: float,
    requests: Sequence[Request],
    driven: Driven,
    clock: FittedSteps,
    blocks: int,
    *,
    stable: bool,
) -> Compared:
    """The measured run beside the simulator's run of the same requests, both in short by the same functions."""

    def predicted(by: FittedSteps) -> RunSummary:
        run = predict(requests, policy, by, blocks)
        return summarise(run.requests, run.steps, slots=policy.slots)

    slower = slowness(clock, driven.steps)
    return Compared(
        policy=policy.name,
        rate_per_s=rate_per_s,
        measured=summarise(driven.requests, driven.steps, slots=policy.slots),
        predicted=predicted(clock),
        at_speed=predicted(clock.slower(slower)),
        slowness=slower,
        stable=stable,
        waited=driven.waited,
    )


def keeps_up(policy: Policy, clock: Estimator, traffic: Synthetic, rate_per_s: float, blocks: int) -> bool:
    """Whether the backlog of a long simulated run is steady at that rate: the rate is below saturation."""
    long = replace(traffic, count=LONG_RUN, duration_s=None).at_rate(rate_per_s)
    return trend(predict(list(long.requests(LONG_SEED)), policy, clock, blocks).requests).stable


def capacity_per_s(policy: Continuous, clock: Estimator, traffic: Synthetic, blocks: int) -> float:
    """Requests/s that continuous batching gets through when there is always a queue."""
    burst = replace(traffic, count=BURST, duration_s=None).at_rate(BURST_RATE)
    run = predict(list(burst.requests(BURST_SEED)), policy, clock, blocks)
    return len(run.requests) / max(run.requests.end_s)


def row_of(compared: Compared, share: float) -> dict[str, Any]:
    """The comparison as plain values."""
    ratios = compared.ratios
    return {
        "policy": compared.policy,
        "rate_per_s": compared.rate_per_s,
        "below_saturation": compared.stable,
        "within": compared.within(share),
        "e2e_p50_ratio": ratios["e2e_p50"],
        "e2e_p95_ratio": ratios["e2e_p95"],
        "measured": summary_of(compared.measured),
        "predicted": summary_of(compared.predicted),
        "ratios": ratios,
        "slowness": compared.slowness,
        "within_at_speed": compared.within_at_speed(share),
        "ratios_at_speed": compared.ratios_at_speed,
        "waited_share": compared.waited,
    }


def summary_of(summary: RunSummary) -> Mapping[str, Any]:
    """Latencies, rates and counts of one run, under the keys of ``simulate``."""
    return {
        "ttft_s": summary.ttft.to_json(),
        "tpot_s": summary.tpot.to_json(),
        "itl_s": summary.itl.to_json(),
        "e2e_s": summary.e2e.to_json(),
        "utilisation": summary.utilisation,
        "output_tokens_per_s": summary.output_tokens_per_s,
        "requests_per_s": summary.requests_per_s,
        "completed": summary.completed,
        "preemptions": summary.preemptions,
    }
