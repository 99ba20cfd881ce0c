"""Servers that die: whole scenarios worked out by hand, a step a second."""

from __future__ import annotations

from collections import Counter
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.test_fleet import assert_equal_fleets, assert_phases_add_up, kind, router
from tests.properties.test_step_skipping import LinesEstimator, estimators, policies, request_lists

from servewise.batching.policies import Continuous, Policy
from servewise.errors import InputError, UnknownName
from servewise.records.columns import COMPLETED, FAILED, REJECTED, UNFINISHED
from servewise.simulate.fleet.fleet import FleetRun, simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import Outage
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.unit_step import UnitStep
from servewise.workload.request import Request

UNIT = ReplicaKind(policy=Continuous(2, prefix_cache=True), estimator=UnitStep(), hash_block_tokens=16)


def rows(run: FleetRun) -> dict[int, tuple[float, float, float, int, int, int]]:
    """By id: first admission, first token, end, tokens, status, replica."""
    found = run.requests
    columns = (found.admitted_s, found.first_token_s, found.end_s, found.output_tokens, found.status, found.replica)
    return {serial: tuple(column[row] for column in columns) for row, serial in enumerate(found.id)}  # type: ignore[misc]


def failing(rule: str, outages: tuple[Outage, ...] = (Outage(0, 4.5, 20.0),)) -> FleetRun:
    """Ten tokens begun at 0 s at replica 0, which dies at 4.5 s; replica 1 is idle."""
    return simulate_fleet([Request(0, 0.0, 10, 10)], [UNIT] * 2, RoundRobin(), outages=outages, on_failure=rule)


def test_a_retry_begins_anew_and_keeps_its_first_token() -> None:
    """Four steps ended by 4.5 s, the fifth is lost; elsewhere ten more from 4.5 s on: first token 1 s, end 14.5 s."""
    run = failing("retry")

    assert rows(run)[0] == (0.0, 1.0, 14.5, 10, COMPLETED, 1)
    assert run.retries == {0: 1}
    assert (run.requests.prefill_s[0], run.requests.preempted_s[0]) == (2.0, 0.0)
    assert sum(run.steps.steps) == 4 + 10


def test_a_continued_answer_computes_what_the_client_has_as_a_prompt() -> None:
    """Four tokens are with the client: one step for prompt and four gives the fifth, five more: end at 10.5 s."""
    run = failing("continue")

    assert rows(run)[0] == (0.0, 1.0, 10.5, 10, COMPLETED, 1)
    assert list(run.steps.prefill_tokens) == [10, 0, 14, 0]


def test_a_failed_request_ends_with_its_server() -> None:
    """By the rule ``fail`` it ends at 4.5 s with the four tokens that came."""
    assert rows(failing("fail"))[0] == (0.0, 1.0, 4.5, 4, FAILED, 0)


def test_steps_that_end_as_the_server_dies_count() -> None:
    """Death at 4 s: the step to 4 s counts, so four tokens are there; the retry ends at 14 s."""
    run = failing("continue", (Outage(0, 4.0),))

    assert rows(run)[0][2] == 10.0
    assert sum(run.steps.steps) == 4 + 6


def test_waiting_requests_move_and_are_no_retries() -> None:
    """Two slots, three requests at replica 0: the one that waited goes to replica 1 with the two that ran."""
    requests = [Request(each, 0.0, 10, 10) for each in range(6)]
    run = simulate_fleet(requests, [UNIT] * 2, RoundRobin(), outages=[Outage(0, 3.0)])

    assert run.retries == {0: 1, 2: 1}
    assert set(run.requests.replica) == {1}
    assert Counter(run.requests.status) == {COMPLETED: 6}
    assert max(run.requests.end_s) == 30.0  # 1, 3 to 10 s; 5 and the first of the lost to 20 s; the last two to 30 s


def test_time_away_counts_as_preempted() -> None:
    """All replicas are down from 2 to 9 s: the request that ran is away for seven seconds and its phases add up."""
    run = simulate_fleet([Request(0, 0.0, 10, 4)], [UNIT], RoundRobin(), outages=[Outage(0, 2.0, 9.0)])

    assert rows(run)[0] == (0.0, 1.0, 13.0, 4, COMPLETED, 0)
    assert run.requests.preempted_s[0] == 7.0


def test_requests_that_come_while_all_are_down_are_held() -> None:
    """Arrival at 3 s, server back at 9 s: it waits six seconds."""
    run = simulate_fleet([Request(0, 3.0, 10, 4)], [UNIT], RoundRobin(), outages=[Outage(0, 2.0, 9.0)])

    assert rows(run)[0][:3] == (9.0, 10.0, 13.0)


def test_without_a_server_left_requests_are_unfinished() -> None:
    """The only server dies for good: what ran and what came later are in the records as unfinished."""
    requests = [Request(0, 0.0, 10, 4), Request(1, 3.0, 10, 4)]
    run = simulate_fleet(requests, [UNIT], RoundRobin(), outages=[Outage(0, 2.0)])

    assert Counter(run.requests.status) == {UNFINISHED: 2}


def test_a_restart_empties_the_prefix_cache() -> None:
    """The same prompt of four blocks three times: a hit before the restart, none right after it."""
    requests = [Request(each, 10.0 * each, 64, 2, (1, 2, 3, 4)) for each in range(3)]
    run = simulate_fleet(requests, [UNIT], RoundRobin(), outages=[Outage(0, 15.0, 16.0)])

    assert list(run.requests.cached_tokens) == [0, 48, 0]


def test_replica_seconds_end_with_a_server_that_never_returns() -> None:
    """Replica 0 is paid to its death at 4.5 s, replica 1 to the last end at 14.5 s."""
    assert failing("retry", (Outage(0, 4.5),)).replica_seconds == 4.5 + 14.5


@pytest.mark.parametrize(
    "outages", [(Outage(2, 1.0),), (Outage(0, 1.0, 5.0), Outage(0, 4.0)), (Outage(0, 1.0), Outage(0, 4.0))]
)
def test_failures_that_cannot_be_are_refused(outages: tuple[Outage, ...]) -> None:
    """A replica that there is not, or one that fails while it is down."""
    with pytest.raises(InputError):
        failing("retry", outages)


def test_an_end_before_the_beginning_and_an_unknown_rule_are_refused() -> None:
    """Each is one clear error."""
    with pytest.raises(InputError, match="ends at 3 s"):
        Outage(0, 4.0, 3.0)
    with pytest.raises(UnknownName):
        failing("ignore")


outage_lists = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0.01, 4), st.floats(0.01, 2) | st.just(inf)),
    max_size=3,
    unique_by=lambda o: o[0],
).map(lambda found: [Outage(number, at, at + gap) for number, at, gap in found])


@settings(max_examples=150, deadline=None)
@given(
    request_lists(),
    policies,
    estimators,
    outage_lists,
    st.sampled_from(["retry", "continue", "fail"]),
    st.sampled_from(["round-robin", "least-loaded", "prefix-aware", "session-sticky"]),
)
def test_whatever_fails_every_request_ends_once(
    requests: list[Request],
    policy: Policy,
    estimator: LinesEstimator,
    outages: list[Outage],
    rule: str,
    name: str,
) -> None:
    """Each request has one record, its phases add up, and stepping one by one gives the same."""
    options = {"outages": outages, "on_failure": rule}
    kinds = [kind(policy, estimator, 40)] * 3
    jumped = simulate_fleet(requests, kinds, router(name), **options)  # type: ignore[arg-type]
    stepped = simulate_fleet(requests, kinds, router(name), **options, longest_jump=1)  # type: ignore[arg-type]

    assert Counter(jumped.requests.id) == Counter(each.serial for each in requests)
    assert set(jumped.requests.status) <= {COMPLETED, REJECTED, FAILED, UNFINISHED}
    assert_phases_add_up(jumped)
    assert_equal_fleets(jumped, stepped)
