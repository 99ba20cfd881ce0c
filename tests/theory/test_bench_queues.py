"""A measurement, from schedule to row, against queueing theory, in virtual time."""

from __future__ import annotations

import pytest
from tests.measure.bench.virtual import VirtualServer

from servewise.measure.bench.condition import Condition
from servewise.measure.bench.measured import Measured
from servewise.measure.bench.one_run import RunWanted, measure
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.wanted import LoadWanted, schedule_for
from servewise.metrics.student import t_quantile
from servewise.metrics.summary import pool
from servewise.workload.lengths import Fixed

SERVICE_S = 0.25 + 4 * 0.125
SEEDS = range(8)


def open_loop(load: float, requests: int, seed: int = 0) -> Measured:
    """Poisson arrivals at ``load`` of what one slot of exact service can do."""
    condition = Condition(kind="rate", value=load / SERVICE_S)
    wanted = LoadWanted(input_tokens=Fixed(4), output_tokens=Fixed(5), requests=requests)
    form = Form(model="m", api="chat")
    schedule = schedule_for(wanted, Prompts(seed=seed), form, seed=seed, rate_per_s=condition.rate_per_s)
    return measure(RunWanted(condition=condition, schedule=schedule), VirtualServer(slots=1))


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_waiting_of_one_slot_is_pollaczek_and_khinchines(load: float) -> None:
    """M/D/1: TTFT is 0.25 s and the mean wait load x service / (2 (1 - load)), within the 99% interval of 8 repeats."""
    runs = [open_loop(load, 1_000, seed) for seed in SEEDS]
    summary = pool([each.summary for each in runs])
    truth_s = 0.25 + load * SERVICE_S / (2 * (1 - load))

    low, high = summary.ttft.ci95["mean"]
    reach = (high - low) / 2 * t_quantile(0.995, len(SEEDS) - 1) / t_quantile(0.975, len(SEEDS) - 1)
    assert abs(summary.ttft.mean - truth_s) <= reach
    assert reach < 0.2 * truth_s
    assert summary.requests_per_s == pytest.approx(load / SERVICE_S, rel=0.05)


def test_littles_law_holds_in_an_open_loop() -> None:
    """Mean number in the system = rate x mean time in it: read off the requests' own intervals by integration."""
    found = open_loop(0.6, 2_000)
    requests, window = found.tally.records.columns, found.window
    inside = sum(
        max(min(end, window.end_s) - max(start, window.start_s), 0.0)
        for start, end in zip(requests.scheduled_s, requests.end_s, strict=True)
    )

    assert inside / window.duration_s == pytest.approx(found.summary.requests_per_s * found.summary.e2e.mean, rel=0.03)


def test_above_capacity_the_run_is_called_growing() -> None:
    """At 130% of what one slot can do the backlog grows without end."""
    found = open_loop(1.3, 1_000)

    assert found.balance is not None
    assert found.balance.verdict == "growing"
