"""Ranks in lockstep: rounds by hand, and jumps against steps one by one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import continuous
from tests.properties.test_fleet import assert_equal_fleets, assert_phases_add_up, kind, router
from tests.properties.test_step_skipping import LinesEstimator, estimators, policies, request_lists

from servewise.batching.policies import Continuous, Policy
from servewise.errors import InputError
from servewise.simulate.fleet.fleet import FleetRun, simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import Outage
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.estimator import Line
from servewise.steptime.shape import StepShape
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True)
class Steady(UnitStep):
    """Every step takes ``seconds_each`` seconds."""

    seconds_each: float = 1.0

    def seconds(self, shape: StepShape) -> float:
        return self.seconds_each

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        return (Line(self.seconds_each, 0.0),)


def steady(seconds: float) -> ReplicaKind:
    """A replica of four slots."""
    return ReplicaKind(policy=Continuous(4), estimator=Steady(seconds_each=seconds))


def run(*requests: Request, longest_jump: int | None = None) -> FleetRun:
    """Ranks of 1 and of 3 seconds a step, in turn."""
    return simulate_fleet(requests, [steady(1.0), steady(3.0)], RoundRobin(), lockstep=True, longest_jump=longest_jump)


def ends(found: FleetRun) -> list[float]:
    """Ends in order of id."""
    return [end for _, end in sorted(zip(found.requests.id, found.requests.end_s, strict=True))]


def test_the_slow_rank_sets_the_pace_while_it_works() -> None:
    """Four tokens at the fast rank, two at the slow: two rounds of 3 s, then two of 1 s: ends at 8 and 6 s."""
    assert ends(run(Request(0, 0.0, 10, 4), Request(1, 0.0, 10, 2))) == [8.0, 6.0]


def test_a_request_that_comes_waits_for_the_round() -> None:
    """The fast rank alone runs its four tokens at 1 s each; at 1.5 s one comes to the slow rank: the round from 2 s on
    takes 3 s, the last one 1 s again.
    """
    assert ends(run(Request(0, 0.0, 10, 4), Request(1, 1.5, 1, 1))) == [6.0, 5.0]


def test_unlike_ranks_apart() -> None:
    """Without lockstep the fast rank's four tokens take 4 s."""
    free = simulate_fleet([Request(0, 0.0, 10, 4), Request(1, 0.0, 10, 2)], [steady(1.0), steady(3.0)], RoundRobin())

    assert ends(free) == [4.0, 6.0]


def test_failures_in_lockstep_are_refused() -> None:
    """Ranks that exchange tokens in every layer fail together."""
    with pytest.raises(InputError, match="lockstep"):
        simulate_fleet([], [steady(1.0)], RoundRobin(), lockstep=True, outages=[Outage(0, 1.0)])


@settings(max_examples=150, deadline=None)
@given(
    request_lists(),
    st.lists(st.tuples(policies, estimators), min_size=2, max_size=3),
    st.sampled_from(["round-robin", "least-loaded", "prefix-aware"]),
)
def test_rounds_jumped_equal_rounds_one_by_one(
    requests: list[Request], servers: list[tuple[Policy, LinesEstimator]], name: str
) -> None:
    """Whatever the ranks' policies and step times, jumping over rounds gives what each round gives."""
    kinds = [kind(policy, estimator, 60) for policy, estimator in servers]
    jumped = simulate_fleet(requests, kinds, router(name), lockstep=True)
    stepped = simulate_fleet(requests, kinds, router(name), lockstep=True, longest_jump=1)

    assert_equal_fleets(jumped, stepped)
    assert_phases_add_up(jumped)


@settings(max_examples=50, deadline=None)
@given(request_lists(), continuous, estimators)
def test_a_rank_alone_is_a_server_alone(requests: list[Request], policy: Policy, estimator: LinesEstimator) -> None:
    """One rank in lockstep with nobody is a plain replica."""
    kinds = [kind(policy, estimator, 60)]

    assert_equal_fleets(
        simulate_fleet(requests, kinds, RoundRobin(), lockstep=True), simulate_fleet(requests, kinds, RoundRobin())
    )
