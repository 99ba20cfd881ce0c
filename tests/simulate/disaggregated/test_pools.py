"""Prefill and decode apart: whole runs by hand, a step a second, and what must hold in any."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import continuous
from tests.properties.test_fleet import assert_equal_fleets, assert_phases_add_up, kind, router
from tests.properties.test_step_skipping import LinesEstimator, estimators, request_lists

from servewise.batching.policies import Continuous, Policy, Static
from servewise.errors import InputError
from servewise.records.columns import COMPLETED, UNFINISHED
from servewise.simulate.disaggregated.pools import PoolsRun, simulate_pools
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.link import LinkTime
from servewise.workload.request import Request

UNIT = ReplicaKind(policy=Continuous(4), estimator=UnitStep())
LINK = LinkTime(latency_s=0.25, bytes_per_s=500.0)


def kv_bytes(tokens: int) -> float:
    """A hundred bytes a token."""
    return 100.0 * tokens


def pools(requests: list[Request], prefills: int = 1, decodes: int = 1, *, layers: int = 1) -> PoolsRun:
    """Unit-step servers with the link of 500 bytes/s and a quarter of a second."""
    routers = RoundRobin(), LeastLoaded()
    return simulate_pools(
        requests, [UNIT] * prefills, [UNIT] * decodes, routers, link=LINK, kv_bytes=kv_bytes, layers=layers
    )


def times(run: PoolsRun) -> list[tuple[float, float, float, float, float, int]]:
    """By id: admission, first token, end, prefill, transfer, replica."""
    found = run.fleet.requests
    names = ("admitted_s", "first_token_s", "end_s", "prefill_s", "transfer_s", "replica")
    at = {serial: row for row, serial in enumerate(found.id)}
    return [tuple(getattr(found, name)[at[serial]] for name in names) for serial in sorted(at)]


def test_one_request_by_hand() -> None:
    """Prefill to 1 s; 1,000 bytes take 2 s and 0.25 s of latency; the first token at 3.25 s, four more to 7.25 s."""
    run = pools([Request(0, 0.0, 10, 5)])

    assert times(run) == [(0.0, 3.25, 7.25, 1.0, 2.25, 1)]
    assert (run.moved.count, run.moved.size_bytes, run.moved.busy_s, run.moved.waited_s) == (1, 1000.0, 2.0, 0.0)


def test_transfers_of_one_server_queue() -> None:
    """Two prompts end together at 1 s: the second transfer begins at 3 s, is there at 5.25 s and joins then."""
    run = pools([Request(each, 0.0, 10, 5) for each in range(2)])

    assert times(run) == [(0.0, 3.25, 7.25, 1.0, 2.25, 1), (0.0, 5.25, 9.25, 1.0, 4.25, 1)]
    assert run.moved.waited_s == 2.0


def test_transfers_between_different_servers_do_not() -> None:
    """Two of each: both transfers run from 1 to 3 s."""
    run = pools([Request(each, 0.0, 10, 5) for each in range(2)], 2, 2)

    assert [row[:3] for row in times(run)] == [(0.0, 3.25, 7.25)] * 2
    assert {row[5] for row in times(run)} == {2, 3}


def test_two_senders_share_the_receiver_s_link() -> None:
    """Two prefill servers, one decode server: the second transfer waits for the first."""
    assert [row[1] for row in times(pools([Request(each, 0.0, 10, 5) for each in range(2)], 2, 1))] == [3.25, 5.25]


def test_layer_by_layer_the_transfer_begins_with_the_first_layer() -> None:
    """Four layers in 1 s: ready at 0.25 s, frees at 2.25 s, there at 2.5 s."""
    assert times(pools([Request(0, 0.0, 10, 5)], layers=4)) == [(0.0, 2.5, 6.5, 1.0, 1.5, 1)]


def test_layer_by_layer_the_last_layer_follows_the_prefill() -> None:
    """Ten bytes in 50 layers: the last layer's 0.2 bytes leave after the prefill, 0.4 ms and the latency."""
    run = pools([Request(0, 0.0, 1, 5)], layers=500)

    assert times(run)[0][1] == pytest.approx(1 + 100 / 500 / 500 + 0.25)


def test_an_answer_of_one_token_never_moves() -> None:
    """The prefill server's token is the whole answer: it ends there, at 1 s."""
    run = pools([Request(0, 0.0, 10, 1)])

    assert times(run) == [(0.0, 1.0, 1.0, 1.0, 0.0, 0)]
    assert run.moved.count == 0


def test_the_wait_at_the_decode_server_counts_in_ttft() -> None:
    """One decode slot, two requests: the second is there at 5.25 s, is admitted when the first ends, at 7.25 s."""
    one_slot = ReplicaKind(policy=Continuous(1), estimator=UnitStep())
    requests = [Request(each, 0.0, 10, 5) for each in range(2)]
    run = simulate_pools(
        requests, [UNIT], [one_slot], (RoundRobin(), RoundRobin()), link=LINK, kv_bytes=kv_bytes
    )  # fmt: skip

    assert times(run)[1] == (0.0, 7.25, 11.25, 1.0, 6.25, 1)


def test_a_run_that_is_told_to_stop_says_what_was_left() -> None:
    """What waits, runs or is on its way is in the records as unfinished, once."""
    requests = [Request(each, 0.01 * each, 10, 5) for each in range(2000)]
    run = simulate_pools(
        requests,
        [UNIT] * 2,
        [UNIT] * 2,
        (RoundRobin(), RoundRobin()),
        link=LINK,
        kv_bytes=kv_bytes,
        until=lambda ended: True,
    )
    found = run.fleet.requests

    assert max(Counter(found.id).values()) == 1
    assert Counter(found.status)[COMPLETED] == 512
    assert Counter(found.status)[UNFINISHED] > 0


def test_empty_pools_and_whole_batches_are_refused() -> None:
    """Each is one clear error."""
    static = ReplicaKind(policy=Static(4), estimator=UnitStep())
    for prefill, decode in (([], [UNIT]), ([UNIT], []), ([static], [UNIT]), ([UNIT], [static])):
        with pytest.raises(InputError):
            simulate_pools([], prefill, decode, (RoundRobin(), RoundRobin()), link=LINK, kv_bytes=kv_bytes)


@settings(max_examples=150, deadline=None)
@given(
    request_lists(),
    continuous,
    continuous,
    estimators,
    st.floats(1e4, 1e7),
    st.sampled_from([1, 4]),
    st.sampled_from(["round-robin", "least-loaded", "prefix-aware"]),
)
def test_every_request_ends_once_its_phases_add_up_and_jumps_are_steps(
    requests: list[Request],
    before: Policy,
    after: Policy,
    estimator: LinesEstimator,
    rate: float,
    layers: int,
    name: str,
) -> None:
    """Each request has one record whose phases are not negative; stepping one by one gives the same."""
    prefill, decode = [kind(before, estimator, 40)] * 2, [kind(after, estimator, 40)] * 2
    link = LinkTime(latency_s=1e-3, bytes_per_s=rate)

    def run(longest_jump: int | None) -> PoolsRun:
        routers = router(name), router(name)
        return simulate_pools(
            requests,
            prefill,
            decode,
            routers,
            link=link,
            kv_bytes=kv_bytes,
            layers=layers,
            longest_jump=longest_jump,
        )

    jumped, stepped = run(None), run(1)
    moved = [row for row, replica in enumerate(jumped.fleet.requests.replica) if replica >= 2]

    assert Counter(jumped.fleet.requests.id) == Counter(each.serial for each in requests)
    assert_phases_add_up(jumped.fleet)
    assert_equal_fleets(jumped.fleet, stepped.fleet)
    assert all(jumped.fleet.requests.transfer_s[row] >= 1e-3 * (1 - 1e-9) for row in moved)
