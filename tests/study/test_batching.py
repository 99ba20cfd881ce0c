"""The study's batching table from the product's simulator, and the simulator against plain loops."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pytest

from servewise.metrics.latency import e2e
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.study import batching, policy_runs
from servewise.study.agreement import lies_in
from servewise.study.policy_runs import POLICIES, all_at_once, arrivals, prediction_interval, run
from servewise.workload.arrivals import Poisson
from servewise.workload.lengths import Fixed, Lognormal
from servewise.workload.request import Request
from servewise.workload.synthetic import Synthetic

SEEDS = 25

# The study's table: requests per step, policy, p50, p95, utilisation.
STUDY = [
    (0.01, "static", "483", "1,134", "0.38"),
    (0.01, "dynamic", "139", "467", "0.16"),
    (0.01, "continuous", "58", "204", "0.18"),
    (0.02, "static", "370", "735", "0.39"),
    (0.02, "dynamic", "199", "560", "0.22"),
    (0.02, "continuous", "58", "202", "0.24"),
    (0.03, "static", "369", "715", "0.39"),
    (0.03, "dynamic", "299", "726", "0.29"),
    (0.03, "continuous", "59", "206", "0.32"),
    (0.04, "static", "791", "1,547", "0.39"),
    (0.04, "dynamic", "805", "1,567", "0.37"),
    (0.04, "continuous", "58", "211", "0.41"),
    (0.07, "static", "7,811", "14,559", "0.39"),
    (0.07, "dynamic", "8,022", "14,685", "0.39"),
    (0.07, "continuous", "64", "216", "0.69"),
]


FIGURES = [
    (rate, policy, name, printed)
    for rate, policy, *texts in STUDY
    for name, printed in zip(("p50", "p95", "utilisation"), texts, strict=True)
]


@pytest.mark.parametrize(("rate", "policy", "name", "printed"), FIGURES)
def test_figure_of_the_batching_table(rate: float, policy: str, name: str, printed: str) -> None:
    """The study's figure lies where one more of our runs would, with a chance of 99%."""
    found = batching.runs(policy, rate, batching.SEEDS)
    assert lies_in(printed, prediction_interval([getattr(each, name) for each in found]))


def test_other_lengths_would_disagree() -> None:
    """Exponential lengths of the study's mean are refused: the verdict is not a matter of course."""
    rng = np.random.default_rng(0)
    p95s = []
    for seed in range(SEEDS):
        lengths = np.ceil(rng.exponential(78, policy_runs.REQUESTS)).astype(int).tolist()
        pairs = zip(arrivals(0.01, seed), lengths, strict=True)
        p95s.append(run(POLICIES["continuous"], [each._replace(output_tokens=n) for each, n in pairs]).p95)
    assert not lies_in("204", prediction_interval(p95s))


@pytest.mark.parametrize(("policy", "other"), [("static", "dynamic"), ("continuous", "dynamic"), ("dynamic", "static")])
def test_another_policy_would_disagree(policy: str, other: str) -> None:
    """At 0.01 a step the study's p50 of one policy lies outside the interval of another."""
    printed = next(row[2] for row in STUDY if row[:2] == (0.01, policy))
    assert not lies_in(printed, prediction_interval([each.p50 for each in batching.runs(other, 0.01, 10)]))


def batchwise_by_hand(requests: list[Request], window: float) -> tuple[dict[int, float], int, int]:
    """Static and dynamic batching in plain loops: latency by serial, active slot-steps, busy steps."""
    latency, active, busy, free, first = {}, 0, 0, 0.0, 0
    while first < len(requests):
        eighth = requests[first + 7].arrival_s if first + 7 < len(requests) else math.inf
        start = min(eighth, requests[first].arrival_s + window)
        start = max(free, requests[-1].arrival_s if start == math.inf else start)
        batch = [each for each in requests[first : first + 8] if each.arrival_s <= start]
        longest = max(each.output_tokens for each in batch)
        free = start + longest
        latency.update({each.serial: free - each.arrival_s for each in batch})
        active, busy, first = active + sum(each.output_tokens for each in batch), busy + longest, first + len(batch)
    return latency, active, busy


def continuous_by_hand(requests: list[Request]) -> tuple[dict[int, float], int, int]:
    """Continuous batching in plain loops, one step at a time."""
    latency, active, busy, now = {}, 0, 0, 0.0
    waiting, running = list(requests), list[list[int]]()
    while waiting or running:
        if not running and waiting[0].arrival_s > now:
            now = waiting[0].arrival_s
        while waiting and waiting[0].arrival_s <= now and len(running) < 8:
            running.append([waiting[0].serial, waiting.pop(0).output_tokens])
        now, active, busy = now + 1, active + len(running), busy + 1
        for each in running:
            each[1] -= 1
            if each[1] == 0:
                latency[each[0]] = now - requests[each[0]].arrival_s
        running = [each for each in running if each[1]]
    return latency, active, busy


@pytest.mark.parametrize("rate", [0.01, 0.04, 0.07])
@pytest.mark.parametrize("policy", ["static", "dynamic", "continuous"])
def test_simulator_is_the_studys_simulation(policy: str, rate: float) -> None:
    """On the same requests every latency and the utilisation equal those of plain loops written from the study."""
    requests = arrivals(rate, 3, 250)
    window = {"static": math.inf, "dynamic": 20.0}
    by_hand = continuous_by_hand(requests) if policy == "continuous" else batchwise_by_hand(requests, window[policy])
    latency, active, busy = by_hand
    done = simulate(requests, POLICIES[policy], UnitStep())
    ours = dict(zip(done.requests.id, e2e(done.requests).tolist(), strict=True))
    assert ours == pytest.approx(latency, rel=1e-9)
    assert run(POLICIES[policy], requests).utilisation == pytest.approx(active / (8 * busy), rel=1e-9)


def test_lengths_meet_the_studys_four_figures() -> None:
    """Mean, median, p95 and longest of 8 of the chosen lengths lie within sampling error (99%) of 78, 58, 204, 203."""
    lengths = [np.array([each.output_tokens for each in arrivals(1.0, seed)]) for seed in range(100)]
    longest = [each[:1496].reshape(-1, 8).max(axis=1).mean() for each in lengths]
    assert lies_in("78", prediction_interval([each.mean() for each in lengths]))
    assert lies_in("58", prediction_interval([float(np.median(each)) for each in lengths]))
    assert lies_in("204", prediction_interval([float(np.quantile(each, 0.95)) for each in lengths]))
    assert lies_in("203", prediction_interval(longest))


def test_saturation_is_slots_over_length() -> None:
    """A server never short of work completes 8 / mean longest (static) and 8 / mean (continuous) requests a step."""
    for seed in range(3):
        requests = all_at_once(seed)
        lengths = np.array([each.output_tokens for each in requests])
        longest = [lengths[start : start + 8].max() for start in range(0, len(lengths), 8)]
        static, continuous = (run(POLICIES[name], requests).throughput for name in ("static", "continuous"))
        assert static == pytest.approx(len(lengths) / sum(longest), rel=1e-9)
        assert 0.96 * 8 / lengths.mean() < continuous <= 8 / lengths.mean()


def test_saturation_table_agrees_with_the_study() -> None:
    """Saturation near 0.039 (static) and 0.10 (continuous) requests a step, by formula and simulated."""
    table = batching.saturation_table()
    assert table.agrees
    assert len(table.select("saturation, simulated")) == 2


def test_overloaded_latencies_grow_with_the_run_and_continuous_ones_do_not() -> None:
    """At 0.07 a step four times the requests give static about four times the p95, and continuous the same."""
    static, continuous = (
        [fmean(each.p95 for each in batching.runs(policy, 0.07, 5, count)) for count in (500, 2000)]
        for policy in ("static", "continuous")
    )
    assert 3 < static[1] / static[0] < 5
    assert 0.9 < continuous[1] / continuous[0] < 1.15


def test_prediction_interval_covers_one_more_run() -> None:
    """A 95% interval from 10 lognormal draws holds an eleventh in 95% of 4,000 trials, give or take 4 errors."""
    draws = np.exp(np.random.default_rng(4).normal(2, 0.7, (4000, 11)))
    held = 0
    for row in draws:
        low, high = prediction_interval(row[:10].tolist(), 0.95)
        held += low <= row[10] <= high
    assert abs(held / 4000 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4000)


def test_runs_use_the_studys_arrivals_and_lengths() -> None:
    """Requests come as a Poisson stream at the rate asked, with the lognormal lengths that the experiment chose."""
    expected = Synthetic(
        arrivals=Poisson(0.02), prompt_lengths=Fixed(1), output_lengths=Lognormal(median=58, sigma=0.77), count=50
    )
    assert arrivals(0.02, 7, 50) == list(expected.requests(7))
