"""Whole runs whose times can be worked out by hand."""

from __future__ import annotations

import math

import pytest

from servewise.batching.policies import Continuous, Dynamic, Static, TrtLlm
from servewise.errors import InputError
from servewise.records.columns import COMPLETED, REJECTED, UNFINISHED
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.workload.request import Request


def test_an_idle_server_starts_at_once_and_takes_a_step_a_token() -> None:
    """Arrival at 5 s, 4 tokens, 1 s a step: first token at 6 s, end at 9 s."""
    run = simulate([Request(0, 5.0, 100, 4)], Continuous(8), UnitStep())

    assert (run.requests.admitted_s[0], run.requests.first_token_s[0], run.requests.end_s[0]) == (5.0, 6.0, 9.0)


def test_a_request_that_comes_within_a_step_joins_at_its_end() -> None:
    """A second request at 1.5 s joins at 2 s."""
    run = simulate([Request(0, 0.0, 100, 9), Request(1, 1.5, 100, 1)], Continuous(8), UnitStep())

    assert run.requests.admitted_s[0] == 2.0
    assert run.requests.end_s[0] == 3.0


@pytest.mark.parametrize("longest_jump", [None, 1])
def test_a_step_decided_ahead_knows_nothing_of_the_slot_that_ends_meanwhile(longest_jump: int | None) -> None:
    """Two come at 3.5 s, as a server of two slots ends its request at 5 s: one joins then, the other at 6 s.

    The step from 5 s is decided at 4 s, when the request that ends at 5 s has its slot still.
    """
    requests = [Request(0, 0.0, 10, 5), Request(1, 3.5, 10, 1), Request(2, 3.5, 10, 1)]
    run = simulate(requests, TrtLlm(max_batch_size=2), UnitStep(), longest_jump=longest_jump)

    assert dict(zip(run.requests.id, run.requests.admitted_s, strict=True)) == {0: 0.0, 1: 5.0, 2: 6.0}


def test_static_batching_holds_the_short_reply() -> None:
    """Outputs of 2 and 5 in one batch: both end at 5 s, their first tokens came at 1 s."""
    run = simulate([Request(0, 0.0, 10, 2), Request(1, 0.0, 10, 5)], Static(2), UnitStep())

    assert list(run.requests.end_s) == [5.0, 5.0]
    assert list(run.requests.first_token_s) == [1.0, 1.0]


def test_the_last_part_batch_of_a_static_run_starts_when_the_stream_ends() -> None:
    """Three requests, batches of two: the third runs after the first two."""
    run = simulate([Request(i, 0.0, 10, 3) for i in range(3)], Static(2), UnitStep())

    assert list(run.requests.end_s) == [3.0, 3.0, 6.0]


def test_the_dynamic_window_counts_from_arrival() -> None:
    """Alone, with a window of 4 s: starts at 4 s after its arrival."""
    run = simulate([Request(0, 1.0, 10, 1), Request(1, 100.0, 10, 1)], Dynamic(2, 4.0), UnitStep())

    assert list(run.requests.admitted_s) == [5.0, 104.0]


def test_a_request_that_can_never_fit_is_rejected_and_the_rest_go_on() -> None:
    """Four blocks of 16: a request of 100 tokens is rejected, its neighbour completes."""
    run = simulate([Request(0, 0.0, 99, 1), Request(1, 0.0, 9, 1)], Continuous(2), UnitStep(), blocks=4)

    assert dict(zip(run.requests.id, run.requests.status, strict=True)) == {0: REJECTED, 1: COMPLETED}


def test_a_run_that_is_told_to_stop_says_what_was_left() -> None:
    """Every request is in the records, the cut ones as unfinished, without an end."""
    requests = [Request(i, float(i), 10, 5) for i in range(2000)]
    run = simulate(requests, Continuous(8), UnitStep(), until=lambda ended: len(ended) >= 600)
    cut = [i for i, status in enumerate(run.requests.status) if status == UNFINISHED]

    assert cut
    assert all(math.isnan(run.requests.end_s[i]) for i in cut)
    assert 600 <= len(run.requests) - len(cut) < 2000


def test_closed_loop_keeps_so_many_in_flight() -> None:
    """Two clients, no think time, six requests of 3 tokens: three rounds of 3 s."""
    requests = [Request(i, 0.0, 10, 3) for i in range(6)]
    run = simulate(ClosedArrivals(requests, 2), Continuous(8), UnitStep())

    assert list(run.requests.end_s) == [3.0, 3.0, 6.0, 6.0, 9.0, 9.0]
    assert max(run.steps.running) == 2


def test_progress_is_told_of_the_last_request() -> None:
    """The last word is the number of requests that ended."""
    told: list[int] = []
    simulate([Request(i, 0.0, 10, 1) for i in range(1500)], Continuous(8), UnitStep(), progress=told.append)

    assert told[-1] == 1500
    assert told == sorted(told)


@pytest.mark.parametrize("arrivals", [(2.0, 1.0), (0.0, math.nan), (0.0, math.inf)])
def test_requests_out_of_order_are_refused(arrivals: tuple[float, float]) -> None:
    """A step back in time, NaN or infinity: one clear error that names the request."""
    requests = [Request(i, at, 10, 1) for i, at in enumerate(arrivals)]
    with pytest.raises(InputError, match="request 1 arrives"):
        simulate(requests, Continuous(8), UnitStep())


def test_cached_prefix_tokens_are_not_computed_again() -> None:
    """The second of two equal 64-token prompts computes only what its cache does not hold (block of 16 left)."""
    requests = [Request(0, 0.0, 64, 1, (1, 2, 3, 4)), Request(1, 10.0, 64, 1, (1, 2, 3, 4))]
    run = simulate(requests, Continuous(8, prefix_cache=True), UnitStep(), blocks=100, hash_block_tokens=16)

    assert list(run.requests.cached_tokens) == [0, 48]
    assert list(run.steps.prefill_tokens) == [64, 16]


def test_a_request_s_time_outside_of_steps_reaches_the_client() -> None:
    """An estimator with ``request_s`` delays first tokens and ends by it, no step; users send later."""

    class Far(UnitStep):
        request_s = 0.5

    requests = [Request(each, 0.0, 4, 3, ()) for each in range(4)]
    near = simulate(ClosedArrivals(iter(requests), 2), Continuous(max_sequences=2), UnitStep())
    far = simulate(ClosedArrivals(iter(requests), 2), Continuous(max_sequences=2), Far())

    assert list(near.requests.first_token_s) == [1.0, 1.0, 4.0, 4.0]
    assert list(far.requests.first_token_s) == [1.5, 1.5, 5.0, 5.0]
    assert list(far.requests.sent_s) == [0.0, 0.0, 3.5, 3.5]
    assert list(far.requests.end_s) == [3.5, 3.5, 7.0, 7.0]
    assert list(far.steps.seconds) == list(near.steps.seconds)
