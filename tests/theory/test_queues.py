"""The event core against queueing theory: each closed form must lie in the simulation's 99.9% interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, factorial, sqrt

import numpy as np
import pytest
from scipy import stats

from servewise.batching.policies import Continuous
from servewise.caveats import Caveat
from servewise.simulate.run import Run, simulate
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.estimator import Estimator, Line, StepTime
from servewise.steptime.shape import StepShape
from servewise.workload.request import Request

REPLICAS, REQUESTS = 20, 6_000
GRAIN = 500  # steps in a mean service: a service time is rounded up to whole steps, 0.1% on average


@dataclass(frozen=True)
class SharedServer:
    """Each step costs 1 s a sequence in it: processor sharing."""

    name: str = "shared"
    window_tokens: int | None = None
    caveats: tuple[Caveat, ...] = ()

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        return (Line(float(sequences), 0.0),)

    def seconds(self, shape: StepShape) -> float:
        return float(shape.decode_sequences + shape.prefill_sequences)

    def step(self, shape: StepShape) -> StepTime:
        raise NotImplementedError


def poisson_requests(rng: np.random.Generator, rate: float, services: np.ndarray) -> list[Request]:
    """Poisson arrivals at ``rate`` a step; service i takes ``services[i]`` mean services."""
    arrivals = np.cumsum(rng.exponential(1 / rate, len(services)))
    steps = np.maximum(1, np.ceil(services * GRAIN)).astype(int)
    return [Request(i, float(arrivals[i]), 1, int(steps[i])) for i in range(len(services))]


def mean_times(run: Run) -> float:
    """Mean time in the system after a warm-up of a tenth, in mean services."""
    latency = np.array(run.requests.end_s) - np.array(run.requests.scheduled_s)
    order = np.argsort(np.array(run.requests.scheduled_s))
    return float(latency[order][REQUESTS // 10 :].mean() / GRAIN)


def interval(samples: list[float], confidence: float = 0.999) -> tuple[float, float]:
    """Student's t interval of the mean."""
    mean, error = np.mean(samples), stats.sem(samples)
    low, high = stats.t.interval(confidence, len(samples) - 1, loc=mean, scale=error)
    return float(low), float(high)


def erlang_c(servers: int, load: float) -> float:
    """Probability of waiting in M/M/c (Erlang 1917); ``load`` = arrival rate x mean service."""
    top = load**servers / factorial(servers) * servers / (servers - load)
    return top / (sum(load**k / factorial(k) for k in range(servers)) + top)


def services(draw: str, rng: np.random.Generator) -> np.ndarray:
    """Service times of mean 1: exponential, lognormal of sigma 0.9, or all equal."""
    if draw == "exponential":
        return rng.exponential(1.0, REQUESTS)
    if draw == "lognormal":
        return np.exp(0.9 * rng.standard_normal(REQUESTS) - 0.405)
    return np.ones(REQUESTS)


def replicate(servers: int, utilisation: float, draw: str, estimator: Estimator | None = None) -> tuple[float, float]:
    """The interval of the mean time in the system over replicas; ``servers`` slots at ``utilisation``."""
    slots, samples = servers if estimator is None else 4096, []
    for seed in range(REPLICAS):
        rng = np.random.default_rng(seed)
        requests = poisson_requests(rng, utilisation * servers / GRAIN, services(draw, rng))
        samples.append(mean_times(simulate(requests, Continuous(slots, 8192), estimator or UnitStep())))
    return interval(samples)


@pytest.mark.parametrize("utilisation", [0.3, 0.6, 0.8])
def test_one_slot_with_exponential_lengths_is_mm1(utilisation: float) -> None:
    """One slot: time in the system is 1 / (1 - rho) mean services (M/M/1)."""
    low, high = replicate(1, utilisation, "exponential")

    assert low <= 1 / (1 - utilisation) * 1.001
    assert high >= 1 / (1 - utilisation) * 0.999


def test_one_slot_with_lognormal_lengths_is_mg1() -> None:
    """One slot: wait is rho (1 + cv^2) / (2 (1 - rho)) (Pollaczek-Khinchine), lognormal sigma 0.9."""
    rho, cv2 = 0.6, np.exp(0.81) - 1
    expected = 1 + rho * (1 + cv2) / (2 * (1 - rho))
    low, high = replicate(1, rho, "lognormal")

    assert low * 0.999 <= expected <= high * 1.001


def test_many_slots_with_exponential_lengths_are_mmc() -> None:
    """c slots whose steps cost the same whatever they hold: wait is C(c, a) / (c - a) (M/M/c)."""
    servers, rho = 4, 0.8
    load = servers * rho
    expected = 1 + erlang_c(servers, load) / (servers - load)
    low, high = replicate(servers, rho, "exponential")

    # A sequence that arrives while others run joins at the next step: up to one step late, half on average.
    assert low * 0.999 <= expected + 0.5 / GRAIN <= high * 1.001


def test_many_slots_with_equal_lengths_are_mdc() -> None:
    """c slots, equal lengths: M/D/c by Cosmetatos (1976), itself good to some 1-2% of the wait."""
    servers, rho = 4, 0.8
    load = servers * rho
    exponential = erlang_c(servers, load) / (servers - load)
    correction = 1 + (1 - rho) * (servers - 1) * (sqrt(4 + 5 * servers) - 2) / (16 * rho * servers)
    wait = exponential / 2 * correction
    low, high = replicate(servers, rho, "deterministic")

    assert low - 0.02 * wait <= 1 + wait + 0.5 / GRAIN <= high + 0.02 * wait


@pytest.mark.parametrize("draw", ["exponential", "lognormal"])
def test_steps_as_long_as_their_batch_are_processor_sharing(draw: str) -> None:
    """No slot limit and steps that cost 1 s a sequence: time is S / (1 - rho) whatever the lengths (M/G/1-PS)."""
    rho = 0.6
    low, high = replicate(1, rho, draw, SharedServer())

    assert low * 0.995 <= 1 / (1 - rho) <= high * 1.005


def test_little_s_law_between_step_and_request_records() -> None:
    """Slots held over time by the step records equal the time from admission to end by the request records."""
    rng = np.random.default_rng(3)
    requests = poisson_requests(rng, 0.8 * 4 / GRAIN, rng.exponential(1.0, 2000))
    run = simulate(requests, Continuous(4, 8192), UnitStep())
    held = float(np.dot(run.steps.running, run.steps.seconds))
    stayed = float(np.sum(np.array(run.requests.end_s) - np.array(run.requests.admitted_s)))

    assert held == pytest.approx(stayed, rel=1e-9)


def test_no_work_is_lost() -> None:
    """Sequence-steps in the step records equal the output tokens of the request records (one token a step)."""
    rng = np.random.default_rng(4)
    requests = poisson_requests(rng, 0.9 * 8 / GRAIN, rng.exponential(1.0, 1000))
    run = simulate(requests, Continuous(8, 8192), UnitStep())

    assert int(np.dot(run.steps.active, run.steps.steps)) == sum(each.output_tokens for each in requests)
    assert ceil(sum(run.steps.seconds)) == sum(run.steps.steps)
