"""A fleet is its replicas: one of them is a single server, and jumps are steps one by one, whatever the router."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import continuous
from tests.properties.test_step_skipping import (
    LinesEstimator,
    close,
    estimators,
    policies,
    request_lists,
    thinking,
)

from servewise.batching.policies import Policy
from servewise.metrics.phases import NAMES, phases
from servewise.records.columns import COMPLETED, REJECTED, RequestColumns
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.fleet.fleet import FleetRun, simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.routers.at_random import AtRandom
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.power_of_two import PowerOfTwo
from servewise.simulate.fleet.routers.prefix_aware import Balance, PrefixAware
from servewise.simulate.fleet.routers.prefix_hash import PrefixHash
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.fleet.routers.session import SessionSticky
from servewise.simulate.run import simulate
from servewise.workload.request import Request

ROUTERS = ("round-robin", "least-loaded", "power-of-two", "random", "prefix-aware", "session-sticky", "prefix-hash")
REQUEST_COLUMNS = ("id", "scheduled_s", "prompt_tokens", "cached_tokens", "output_tokens", "preemptions", "status")
TIMES = ("admitted_s", "first_token_s", "end_s", "prefill_s", "preempted_s", "transfer_s")


def router(name: str) -> Router:
    """A fresh router of that name, seeded."""
    makers: dict[str, Callable[[], Router]] = {
        "round-robin": RoundRobin,
        "least-loaded": LeastLoaded,
        "power-of-two": lambda: PowerOfTwo(Random(7)),
        "random": lambda: AtRandom(Random(7)),
        "session-sticky": SessionSticky,
        "prefix-hash": PrefixHash,
        "prefix-aware": lambda: PrefixAware(32, 10, Balance(balance_abs_threshold=2)),
    }
    return makers[name]()


def kind(policy: Policy, estimator: LinesEstimator, blocks: int | None, weight: float = 1.0) -> ReplicaKind:
    """Replicas of such a server, hashes of 32 tokens."""
    return ReplicaKind(
        policy=policy, estimator=estimator, blocks=blocks, block_tokens=16, hash_block_tokens=32, weight=weight
    )


def assert_equal_fleets(jumped: FleetRun, stepped: FleetRun) -> None:
    """Every request ends at the same replica at the same times with the same counts."""
    one, other = jumped.requests, stepped.requests
    assert len(one) == len(other)
    at = {serial: row for row, serial in enumerate(other.id)}
    for row, serial in enumerate(one.id):
        for name in (*REQUEST_COLUMNS, "replica"):
            assert getattr(one, name)[row] == getattr(other, name)[at[serial]], name
        for name in TIMES:
            assert close(getattr(one, name)[row], getattr(other, name)[at[serial]]), name
    assert sum(jumped.steps.steps) == sum(stepped.steps.steps)


def by_id(requests: RequestColumns, column: str) -> list[float]:
    """The column in order of id: a fleet refuses at the arrival what one server refuses at its step's end."""
    return [value for _, value in sorted(zip(requests.id, getattr(requests, column), strict=True))]


@settings(max_examples=200, deadline=None)
@given(request_lists(), policies, estimators, st.none() | st.integers(14, 60), st.sampled_from(ROUTERS))
def test_a_fleet_of_one_is_a_single_server(
    requests: list[Request], policy: Policy, estimator: LinesEstimator, blocks: int | None, name: str
) -> None:
    """One replica behind any router writes the very records that ``simulate`` writes, steps and all."""
    alone = simulate(
        requests,
        policy,
        estimator,
        blocks=blocks,
        block_tokens=16,
        hash_block_tokens=32,
    )
    fleet = simulate_fleet(requests, [kind(policy, estimator, blocks)], router(name))

    for column in (*REQUEST_COLUMNS, *TIMES):
        one, other = by_id(alone.requests, column), by_id(fleet.requests, column)
        assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(one, other, strict=True)), column
    for column in ("start_s", "seconds", "steps", "decode_sequences", "prefill_tokens", "running", "active"):
        assert list(getattr(alone.steps, column)) == list(getattr(fleet.steps, column)), column


@settings(max_examples=60, deadline=None)
@given(request_lists(), continuous, estimators, st.integers(1, 6), thinking)
def test_a_fleet_of_one_in_a_closed_loop_is_a_single_server(
    requests: list[Request], policy: Policy, estimator: LinesEstimator, clients: int, think_s: float
) -> None:
    """The same where each client waits for its answer before it sends again."""
    alone = simulate(ClosedArrivals(requests, clients, think_s), policy, estimator, blocks=40)
    fleet = simulate_fleet(
        ClosedArrivals(requests, clients, think_s),
        [ReplicaKind(policy=policy, estimator=estimator, blocks=40)],
        RoundRobin(),
    )

    for column in ("id", "scheduled_s", "end_s", "first_token_s"):
        assert list(getattr(alone.requests, column)) == list(getattr(fleet.requests, column)), column


@settings(max_examples=200, deadline=None)
@given(
    request_lists(),
    st.lists(st.tuples(continuous, estimators, st.floats(0.5, 3)), min_size=2, max_size=4),
    st.none() | st.integers(14, 60),
    st.sampled_from(ROUTERS),
)
def test_jumps_equal_single_steps_in_a_fleet(
    requests: list[Request],
    servers: list[tuple[Policy, LinesEstimator, float]],
    blocks: int | None,
    name: str,
) -> None:
    """Unequal replicas behind any router: jumping gives what stepping one by one gives."""
    kinds = [kind(policy, estimator, blocks, weight) for policy, estimator, weight in servers]
    jumped = simulate_fleet(requests, kinds, router(name))
    stepped = simulate_fleet(requests, kinds, router(name), longest_jump=1)

    assert_equal_fleets(jumped, stepped)


@settings(max_examples=100, deadline=None)
@given(request_lists(), policies, estimators, st.none() | st.integers(5, 60), st.sampled_from(ROUTERS))
def test_every_request_ends_once_and_its_phases_add_up(
    requests: list[Request], policy: Policy, estimator: LinesEstimator, blocks: int | None, name: str
) -> None:
    """Each request has one record; where it completed, none of its phases is negative and their sum is its latency."""
    run = simulate_fleet(requests, [kind(policy, estimator, blocks)] * 3, router(name))

    assert Counter(run.requests.id) == Counter(each.serial for each in requests)
    assert set(run.requests.status) <= {COMPLETED, REJECTED}
    assert_phases_add_up(run)


def assert_phases_add_up(run: FleetRun) -> None:
    """No phase is below zero beyond rounding; decode, the rest, is not either."""
    parts = phases(run.requests)
    assert parts is not None
    for row, status in enumerate(run.requests.status):
        if status == COMPLETED:
            assert all(parts[name][row] >= -1e-9 for name in NAMES)
