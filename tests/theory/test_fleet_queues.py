"""Routing against queueing theory: each closed form must lie in the simulation's 99.9% interval.

Every replica serves one request at a time, a step a second, so that a fleet of k of them is k single-server queues
behind a router; times are in mean services of ``GRAIN`` steps.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from tests.theory.test_queues import GRAIN, erlang_c, interval

from servewise.batching.policies import Continuous
from servewise.simulate.fleet.fleet import FleetRun, simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.routers.at_random import AtRandom
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.power_of_two import PowerOfTwo
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.unit_step import UnitStep
from servewise.workload.request import Request

ONE_SLOT = ReplicaKind(policy=Continuous(1), estimator=UnitStep())
RUNS = 10


def traffic(seed: int, count: int, replicas: int, load: float) -> list[Request]:
    """Poisson arrivals and exponential services that keep each of ``replicas`` servers busy for the share ``load``."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(GRAIN / (load * replicas), count))
    steps = np.maximum(1, np.ceil(rng.exponential(1.0, count) * GRAIN)).astype(int)
    return [Request(each, float(arrivals[each]), 1, int(steps[each])) for each in range(count)]


def means(make: Callable[[int], Router], replicas: int, load: float, count: int) -> list[float]:
    """The mean time in the system of each run, after a warm-up of a tenth."""
    return [
        mean_time(simulate_fleet(traffic(seed, count, replicas, load), [ONE_SLOT] * replicas, make(seed)))
        for seed in range(RUNS)
    ]


def mean_time(run: FleetRun) -> float:
    """Mean time in the system, in mean services."""
    latency = np.array(run.requests.end_s) - np.array(run.requests.scheduled_s)
    order = np.argsort(np.array(run.requests.scheduled_s))
    return float(latency[order][len(order) // 10 :].mean() / GRAIN)


def erlang_arrivals(servers: int, load: float) -> float:
    """Mean time in an E_k/M/1 queue (Kleinrock 1975, 6.4): 1 / (1 - s), s = A(1 - s), A the transform of the gaps."""
    root = 0.5
    for _ in range(500):
        root = (servers * load / (servers * load + 1 - root)) ** servers
    return 1 / (1 - root)


def test_random_routing_makes_each_replica_an_mm1_queue() -> None:
    """A Poisson stream split at random is Poisson at each: time 1 / (1 - load)."""
    low, high = interval(means(lambda seed: AtRandom(Random(seed)), 4, 0.6, 4000))

    assert low * 0.999 <= 1 / (1 - 0.6) <= high * 1.001


def test_round_robin_makes_each_replica_an_erlang_queue() -> None:
    """Every fourth arrival of a Poisson stream comes after an Erlang-4 gap: time 1 / (1 - s) of E4/M/1."""
    low, high = interval(means(lambda _: RoundRobin(), 4, 0.8, 4000))

    assert low * 0.999 <= erlang_arrivals(4, 0.8) <= high * 1.001
    assert erlang_arrivals(1, 0.8) == pytest.approx(5.0)  # E1/M/1 is M/M/1


def test_the_shortest_queue_lies_between_one_common_queue_and_round_robin() -> None:
    """No router beats one queue for all (M/M/4), and the shortest queue beats turns (Winston 1977)."""
    load = 0.8
    one_queue = 1 + erlang_c(4, 4 * load) / (4 - 4 * load)
    low, high = interval(means(lambda _: LeastLoaded(), 4, load, 4000))

    assert one_queue * 0.999 <= high
    assert low <= erlang_arrivals(4, load) * 0.9


@pytest.fixture(scope="module")
def two_choices() -> list[FleetRun]:
    """Runs of 100 replicas, each 70% busy, behind a router of two choices."""
    kinds = [ONE_SLOT] * 100
    return [simulate_fleet(traffic(seed, 8000, 100, 0.7), kinds, PowerOfTwo(Random(seed))) for seed in range(RUNS)]


@pytest.mark.slow
def test_two_choices_have_mitzenmacher_s_mean(two_choices: list[FleetRun]) -> None:
    """Many replicas, two choices: time is the sum of load^(2^i - 2) over i from 1 on (Mitzenmacher 2001, cor. 1).

    The limit is of infinitely many; 100 are 1% off at this load in his own table 1.
    """
    expected = sum(0.7 ** (2**i - 2) for i in range(1, 8))
    low, high = interval([mean_time(run) for run in two_choices])

    assert low * 0.985 <= expected <= high * 1.015


@pytest.mark.slow
def test_two_choices_have_a_doubly_exponential_tail(two_choices: list[FleetRun]) -> None:
    """The share of replicas with at least k requests is load^(2^k - 1): 0.7, 0.343, 0.082, 0.0047 for k from 1 to 4."""
    shares = [queue_shares(run, 100) for run in two_choices]
    for place, found in enumerate(zip(*shares, strict=True), start=1):
        low, high = interval(list(found))
        assert low - 0.005 <= 0.7 ** (2**place - 1) <= high + 0.005, place


def queue_shares(run: FleetRun, replicas: int) -> list[float]:
    """The share of replicas that hold at least 1, 2, 3, 4 requests, over the middle of the run."""
    came, left = np.array(run.requests.scheduled_s), np.array(run.requests.end_s)
    where = np.array(run.requests.replica)
    instants = np.linspace(came.max() * 0.3, came.max() * 0.9, 200)
    held = np.array(
        [
            np.searchsorted(np.sort(came[where == one]), instants, "right")
            - np.searchsorted(np.sort(left[where == one]), instants, "right")
            for one in range(replicas)
        ]
    )
    return [float((held >= least).mean()) for least in (1, 2, 3, 4)]


def test_weights_split_the_load() -> None:
    """At random by weights of 1 and 3, a quarter and three quarters of the requests, within 4 standard deviations."""
    kinds = [ReplicaKind(policy=Continuous(1), estimator=UnitStep(), weight=weight) for weight in (1.0, 3.0)]
    runs = [simulate_fleet(traffic(seed, 4000, 1, 0.6), kinds, AtRandom(Random(seed))) for seed in range(4)]
    share = np.mean([np.mean(np.array(run.requests.replica) == 1) for run in runs])

    assert abs(share - 0.75) < 4 * (0.25 * 0.75 / 16_000) ** 0.5
