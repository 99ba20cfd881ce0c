"""Speculation in a fleet is that of its servers: a request draws the same wherever it runs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.test_fleet import REQUEST_COLUMNS, TIMES, assert_equal_fleets, by_id, router
from tests.properties.test_speculation import DRAFT, TARGET, acceptances, lengths, policies, presets, request_lists

from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.policy import Groupable
from servewise.batching.speculative.tally import Tally
from servewise.records.columns import COMPLETED
from servewise.simulate.fleet.fleet import simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import Outage
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.run import simulate
from servewise.simulate.speculating.speculation import Speculation
from servewise.workload.request import Request

ROUTERS = ("round-robin", "least-loaded", "power-of-two", "prefix-aware")
BLOCKS, BLOCK_TOKENS, HASH_TOKENS = 40, 16, 32


def speculation(data: st.DataObject, acceptance: Acceptance) -> Speculation:
    """One that drafts by any length."""
    return Speculation(TARGET, DRAFT, acceptance, data.draw(lengths(acceptance)))


def kind(drafts: Speculation, policy: Groupable) -> ReplicaKind:
    """A server that speculates, as a fleet's options make it: whose seed and tally come with the run."""
    return ReplicaKind(
        policy=drafts.policy(policy),
        beside=drafts.beside,
        estimator=TARGET,
        blocks=BLOCKS,
        block_tokens=BLOCK_TOKENS,
        hash_block_tokens=HASH_TOKENS,
    )


@settings(max_examples=100, deadline=None)
@given(st.data(), request_lists(), policies | presets, acceptances, st.integers(1, 4), st.integers(0, 9))
def test_replicas_in_turn_are_single_servers_with_their_shares(
    data: st.DataObject,
    requests: list[Request],
    policy: Groupable,
    acceptance: Acceptance,
    replicas: int,
    seed: int,
) -> None:
    """Behind round robin replica r of n does what a server by itself does with requests r, r + n, r + 2n, ...

    The same counts and times of every request, and in all as many drafts, verifications and tokens gained.
    """
    drafts, together = speculation(data, acceptance), Tally()
    kinds = [kind(drafts, policy).drawing(seed, together)] * replicas
    fleet = simulate_fleet(requests, kinds, RoundRobin()).requests
    alone, apart = [], Tally()
    for number in range(replicas):
        tally = Tally()
        run = simulate(
            requests[number::replicas],
            replace(drafts.policy(policy, seed), tally=tally),
            TARGET,
            blocks=BLOCKS,
            block_tokens=BLOCK_TOKENS,
            hash_block_tokens=HASH_TOKENS,
            beside=drafts.beside,
        )
        alone.append(run.requests)
        apart = apart.plus(tally)

    for column in (*REQUEST_COLUMNS, *TIMES):
        of_alone = sorted(pair for each in alone for pair in zip(each.id, getattr(each, column), strict=True))
        assert repr([value for _, value in of_alone]) == repr(by_id(fleet, column)), column
    assert together == apart


@settings(max_examples=100, deadline=None)
@given(st.data(), request_lists(), policies | presets, acceptances, st.sampled_from(ROUTERS))
def test_jumps_equal_single_steps_where_some_steps_draft_and_some_do_not(
    data: st.DataObject, requests: list[Request], policy: Groupable, acceptance: Acceptance, name: str
) -> None:
    """Lengths that fall to none at large batch let replicas jump in between: it gives what stepping gives."""
    kinds = [kind(speculation(data, acceptance), policy) for _ in range(2)]
    jumped = simulate_fleet(requests, kinds, router(name))
    stepped = simulate_fleet(requests, kinds, router(name), longest_jump=1)

    assert_equal_fleets(jumped, stepped)


@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    request_lists(),
    policies | presets,
    acceptances,
    st.floats(0.001, 3),
    st.floats(0.001, 1),
    st.sampled_from(["retry", "continue"]),
)
def test_no_token_is_lost_or_made_twice_when_a_replica_dies(
    data: st.DataObject,
    requests: list[Request],
    policy: Groupable,
    acceptance: Acceptance,
    at_s: float,
    down_s: float,
    rule: str,
) -> None:
    """What was drafted at the dead server is gone; every request ends elsewhere with the tokens that it asked for."""
    kinds = [kind(speculation(data, acceptance), policy)] * 2
    outage = Outage(0, at_s, at_s + down_s)
    found = simulate_fleet(requests, kinds, RoundRobin(), outages=[outage], on_failure=rule).requests

    served = {serial for serial, status in zip(found.id, found.status, strict=True) if status == COMPLETED}
    whole = simulate_fleet(requests, kinds, RoundRobin()).requests
    assert served == {serial for serial, status in zip(whole.id, whole.status, strict=True) if status == COMPLETED}
    tokens = dict(zip(found.id, found.output_tokens, strict=True))
    assert all(tokens[each.serial] == each.output_tokens for each in requests if each.serial in served)
