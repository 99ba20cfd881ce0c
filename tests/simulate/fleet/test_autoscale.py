"""The autoscaler: its rule by hand, and whole runs by hand, a step a second."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.test_fleet import assert_equal_fleets, assert_phases_add_up, kind, router
from tests.properties.test_step_skipping import LinesEstimator, estimators, policies, request_lists

from servewise.batching.policies import Continuous, Policy
from servewise.errors import InputError
from servewise.records.columns import COMPLETED
from servewise.simulate.fleet.autoscale import Autoscale, Autoscaler, Seen
from servewise.simulate.fleet.fleet import FleetRun, simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import Outage
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.unit_step import UnitStep
from servewise.workload.request import Request

TWO_SLOTS = ReplicaKind(policy=Continuous(2), estimator=UnitStep())


def seen(replicas: int, requests: int, *, waiting: int = 0, wait_s: float = 0.0) -> Seen:
    """Replicas of ten slots."""
    return Seen(replicas, 10, requests, waiting, wait_s)


@pytest.mark.parametrize(
    ("replicas", "requests", "wanted"),
    [(1, 20, 4), (2, 11, 2), (2, 9, 2), (2, 12, 3), (4, 8, 2), (3, 0, 1), (1, 999, 9)],
)
def test_replicas_follow_the_load(replicas: int, requests: int, wanted: int) -> None:
    """Target 0.5 of ten slots: one replica for each five requests, rounded up; within 10% of it nothing changes."""
    settings = Autoscale(target=0.5, settle_s=0.0, least=1, most=9)

    assert Autoscaler(settings).wanted(0.0, seen(replicas, requests)) == wanted


def test_kubernetes_own_example() -> None:
    """50 pods at 90% with a target of 75% become 60 (Kubernetes blog, v1.33, 2025-04-28)."""
    settings = Autoscale(target=0.75, most=100)

    assert Autoscaler(settings).wanted(0.0, Seen(50, 20, 900, 0, 0.0)) == 60


def test_fewer_are_wanted_only_after_the_settling_time() -> None:
    """Load for four at 0 s, for one from 10 s on: with 20 s to settle, four stay until 20 s and go at 30 s."""
    scaler = Autoscaler(Autoscale(target=0.5, settle_s=20.0))
    wanted = [scaler.wanted(0.0, seen(4, 20))] + [scaler.wanted(at, seen(4, 5)) for at in (10.0, 20.0, 30.0)]

    assert wanted == [4, 4, 4, 1]


@pytest.mark.parametrize(
    ("requests", "waiting", "wait_s", "wanted"), [(30, 5, 2.5, 4), (30, 5, 1.5, 3), (25, 0, 0.0, 3), (20, 0, 0.0, 2)]
)
def test_by_wait_one_at_a_time(requests: int, waiting: int, wait_s: float, wanted: int) -> None:
    """Target 2 s, three replicas of ten: one more above it; one fewer if none waits and two hold all that runs."""
    scaler = Autoscaler(Autoscale(metric="wait", target=2.0, settle_s=0.0))

    assert scaler.wanted(0.0, seen(3, requests, waiting=waiting, wait_s=wait_s)) == wanted


def run(settings: Autoscale, *later: Request) -> FleetRun:
    """Six requests of 25 tokens at 0 s for one replica of two slots, and ``later`` ones."""
    requests = [Request(each, 0.0, 10, 25) for each in range(6)] + list(later)
    return simulate_fleet(requests, [TWO_SLOTS], LeastLoaded(), autoscale=settings)


def test_a_surge_by_hand() -> None:
    """Asked every 10 s, 5 s to start, 20 s to settle, at most 3 of two slots, target 1.

    10 s: six requests want three replicas, two are ordered, up at 15 s. At 16 s two requests come and find them idle:
    done at 41 s. Replica 0 works off its six, two at a time, to 75 s. From 50 s on two are left, which want one
    replica; at 40 s three were wanted, so it is 70 s before the last 20 s all say one, and both idle ones go.
    """
    settings = Autoscale(target=1.0, interval_s=10.0, startup_s=5.0, settle_s=20.0, most=3)
    found = run(settings, Request(6, 16.0, 10, 25), Request(7, 16.0, 10, 25))
    ends = dict(zip(found.requests.id, found.requests.end_s, strict=True))

    assert [ends[each] for each in range(8)] == [25.0, 25.0, 50.0, 50.0, 75.0, 75.0, 41.0, 41.0]
    assert [(head.at_s, head.up, head.starting) for head in found.heads] == [
        (0.0, 1, 0), (10.0, 1, 2), (15.0, 3, 0), (70.0, 1, 0)
    ]  # fmt: skip
    assert found.replica_seconds == 75.0 + 60.0 + 60.0


def test_a_start_that_is_no_longer_wanted_is_cancelled() -> None:
    """Ordered at 10 s with 60 s to start; at 50 s, before they come, one replica is enough: they never come."""
    settings = Autoscale(target=1.0, interval_s=10.0, startup_s=60.0, settle_s=0.0, most=3)
    found = run(settings)

    assert {head.up for head in found.heads} == {1}
    assert max(found.requests.end_s) == 75.0


def test_one_that_leaves_ends_its_requests_first() -> None:
    """Replica 1, idle, gets 60 tokens at 41 s. At 80 s that is all there is, one is wanted: it goes at 101 s."""
    settings = Autoscale(target=1.0, interval_s=10.0, startup_s=5.0, settle_s=0.0, most=2)
    found = run(settings, Request(6, 41.0, 10, 60))
    drained = [head.at_s for head in found.heads if head.draining]

    assert set(found.requests.status) == {COMPLETED}
    assert drained == [80.0]
    assert (found.heads[-1].at_s, found.heads[-1].up) == (101.0, 1)
    assert found.replica_seconds == 101.0 + (101.0 - 10.0)


@pytest.mark.parametrize(
    "wrong", [{"metric": "mood"}, {"target": 0.0}, {"least": 3, "most": 2}, {"interval_s": 0.0}, {"startup_s": -1.0}]
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    """Each is one clear error."""
    with pytest.raises(InputError):
        Autoscale(**wrong)  # type: ignore[arg-type]


scalings = st.builds(
    Autoscale,
    metric=st.sampled_from(["load", "wait"]),
    target=st.floats(0.05, 1.0),
    interval_s=st.floats(0.05, 1.0),
    startup_s=st.floats(0.0, 1.0),
    settle_s=st.floats(0.0, 1.0),
    least=st.just(1),
    most=st.integers(1, 4),
)


@settings(max_examples=120, deadline=None)
@given(
    request_lists(),
    policies,
    estimators,
    scalings,
    st.none() | st.floats(0.05, 2.0),
    st.sampled_from(["round-robin", "least-loaded", "prefix-aware", "session-sticky"]),
)
def test_whoever_comes_and_goes_every_request_ends_once(
    requests: list[Request],
    policy: Policy,
    estimator: LinesEstimator,
    scaling: Autoscale,
    dies_s: float | None,
    name: str,
) -> None:
    """Replicas are ordered, start, drain, go, and one may die: each request has one record, and jumps are steps."""
    outages = [] if dies_s is None else [Outage(0, dies_s, dies_s + 0.5)]
    kinds = [kind(policy, estimator, 60)]
    jumped = simulate_fleet(requests, kinds, router(name), autoscale=scaling, outages=outages)
    stepped = simulate_fleet(requests, kinds, router(name), autoscale=scaling, outages=outages, longest_jump=1)

    assert Counter(jumped.requests.id) == Counter(each.serial for each in requests)
    assert all(head.up + head.starting + head.down <= scaling.most for head in jumped.heads)
    assert_phases_add_up(jumped)
    assert_equal_fleets(jumped, stepped)
