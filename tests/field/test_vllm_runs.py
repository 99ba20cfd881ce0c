"""Real vLLM 0.19 servers' runs against their simulation, request by request; see ``benchmarks/data/vllm_runs``."""

from __future__ import annotations

import pytest
from benchmarks.accuracy.vllm_runs.__main__ import FITTED_BARS, SHIPPED_BARS
from benchmarks.accuracy.vllm_runs.fitted import fit_first_half, halves
from benchmarks.accuracy.vllm_runs.judged import errors, measured, sent_back, sent_back_in, simulated, times_of
from benchmarks.accuracy.vllm_runs.runs import RUNS, VllmRun

RTX_4090, RTX_PRO = RUNS
each_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)


@each_run
def test_what_ships_predicts_the_run(run: VllmRun) -> None:
    """With nothing fitted on any run: e2e and TPOT within 8%, TTFT p50 within 10%, throughput within 5%."""
    found = errors(times_of(simulated(run, run.told_blocks or run.own_blocks)), measured(run))

    for name, most in SHIPPED_BARS.items():
        assert abs(getattr(found, name)) <= most, name


def test_the_pool_worked_out_serves_too() -> None:
    """A pool 2.5% too small: requests end and decode as measured; TTFT p50, between two waves, misses its bar (15%)."""
    own = RTX_4090.own_blocks
    found = errors(times_of(simulated(RTX_4090, own)), measured(RTX_4090))

    assert own == pytest.approx(2588, rel=0.03)
    assert found.e2e <= SHIPPED_BARS["e2e"]
    assert found.tpot <= SHIPPED_BARS["tpot"]
    assert abs(found.throughput) <= SHIPPED_BARS["throughput"]


def test_as_many_are_sent_back_as_on_the_server() -> None:
    """Requests that were admitted and wait again, seen once a second: mean and rises within a third of the measured."""
    known = sent_back(RTX_4090)
    found = sent_back_in(RTX_4090, simulated(RTX_4090, 2588))

    assert found.mean == pytest.approx(known.mean, rel=1 / 3)
    assert found.increases == pytest.approx(known.increases, rel=1 / 3)


def test_a_pool_without_pressure_sends_nobody_back() -> None:
    """192 GB hold 128 sequences of the 32B model: nothing is preempted."""
    assert not any(simulated(RTX_PRO, RTX_PRO.own_blocks).requests.preemptions)


@pytest.mark.slow
@each_run
def test_the_first_half_tells_the_second(run: VllmRun) -> None:
    """Coefficients fitted on the first half of the requests predict the second within 4%."""
    blocks = run.told_blocks or run.own_blocks
    _, second = halves(run, blocks, fit_first_half(run, blocks))

    for name, most in FITTED_BARS.items():
        assert abs(getattr(second, name)) <= most, name
