"""Fleets of replicas that are split over pipeline stages: arrivals join batches that are in flight."""

from __future__ import annotations

import pytest
from tests.ask.made import chat
from tests.properties.test_fleet import assert_equal_fleets, by_id

from servewise.ask.deploying import deploy
from servewise.batching.policies import Continuous
from servewise.plan.clock import clock_for
from servewise.records.columns import COMPLETED
from servewise.simulate.fleet.fleet import simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import Outage
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.run import simulate

STAGES = deploy("llama-2-13b", "a100-80gb", tp=1, pp=2)
POLICY, CLOCK = Continuous(8), clock_for(STAGES, "ideal")
KIND = ReplicaKind(policy=POLICY, estimator=CLOCK, blocks=2000, deployment=STAGES)


@pytest.mark.parametrize("seed", range(6))
def test_a_fleet_of_one_is_a_single_server(seed: int) -> None:
    """Two stages: whatever a request finds in flight when it comes, the fleet does what ``simulate`` does."""
    requests = list(chat(120).at_rate(2.0 + seed).requests(seed))
    alone = simulate(requests, POLICY, CLOCK, blocks=2000, deployment=STAGES)
    fleet = simulate_fleet(requests, [KIND], RoundRobin())

    for column in ("admitted_s", "first_token_s", "end_s", "prefill_s"):
        assert by_id(fleet.requests, column) == by_id(alone.requests, column), column


@pytest.mark.parametrize("seed", range(4))
def test_jumps_equal_single_steps_whatever_fails(seed: int) -> None:
    """Three replicas, one of which dies and returns: every request completes, at the times of stepping one by one."""
    requests = list(chat(120).at_rate(6.0).requests(seed))
    outages = [Outage(1, 5.0 + seed, 12.0)]
    jumped = simulate_fleet(requests, [KIND] * 3, LeastLoaded(), outages=outages)
    stepped = simulate_fleet(requests, [KIND] * 3, LeastLoaded(), outages=outages, longest_jump=1)

    assert set(jumped.requests.status) == {COMPLETED}
    assert_equal_fleets(jumped, stepped)
