"""Balance of queues whose saturation is known: M/M/1 and M/M/8, by exact recursion."""

from __future__ import annotations

import heapq
from collections import Counter

import numpy as np
import pytest
from tests.metrics import made

from servewise.metrics.saturation import Balance, trend
from servewise.records.columns import REJECTED, RequestColumns


def queue(load: float, servers: int, count: int, seed: int, *, admissions: bool = True) -> RequestColumns:
    """An M/M/c queue of unit service, first come first served, begun empty."""
    rng = np.random.default_rng((seed, servers, count))
    arrival = np.cumsum(rng.exponential(1 / (load * servers), count))
    service = rng.exponential(1, count)
    free, start = [0.0] * servers, np.empty(count)
    for i, (came, takes) in enumerate(zip(arrival.tolist(), service.tolist(), strict=True)):
        start[i] = max(heapq.heappop(free), came)
        heapq.heappush(free, float(start[i]) + takes)
    end = start + service
    return made.requests(arrival, start, end, np.ones(count), admitted=start if admissions else None)


def verdicts(load: float, servers: int, count: int, *, admissions: bool = True) -> Counter[str]:
    """The verdicts of 20 runs."""
    return Counter(trend(queue(load, servers, count, seed, admissions=admissions)).verdict for seed in range(20))


@pytest.mark.parametrize("servers", [1, 8])
def test_queues_at_half_load_are_steady(servers: int) -> None:
    """At load 0.5, 1,500 requests suffice to say so every time."""
    assert verdicts(0.5, servers, 1500) == {"steady": 20}


@pytest.mark.parametrize("servers", [1, 8])
def test_overloaded_queues_grow(servers: int) -> None:
    """At load 1.3, 1,500 requests suffice; at 1.1, 6,000 do in at least 18 of 20; the growth is load - 1."""
    assert verdicts(1.3, servers, 1500)["growing"] == 20
    assert verdicts(1.1, servers, 6000)["growing"] >= 18
    found = [trend(queue(1.3, servers, 6000, seed)) for seed in range(20)]
    assert np.mean([each.growth_share for each in found]) == pytest.approx(0.3 / 1.3, abs=0.012)
    assert sum(each.ci95[0] < servers * 0.3 < each.ci95[1] for each in found) >= 17


@pytest.mark.parametrize("servers", [1, 8])
def test_near_saturation_no_verdict_is_wrong_often(servers: int) -> None:
    """At load 0.95 "growing", and at 1.05 "steady", come at most 2 times of 20 with 3,000 requests."""
    assert verdicts(0.95, servers, 3000)["growing"] <= 2
    assert verdicts(1.05, servers, 3000)["steady"] <= 2


def test_measured_runs_are_judged_by_their_ends() -> None:
    """Without admission times, half load is never "growing", and 30% overload always is."""
    assert verdicts(0.5, 8, 3000, admissions=False)["growing"] == 0
    assert verdicts(1.3, 8, 3000, admissions=False)["growing"] == 20


def test_a_run_cut_short_still_counts_who_waits() -> None:
    """Requests never admitted stay in the backlog: a server that stops admitting is growing."""
    run = queue(0.5, 1, 2000, 0)
    admitted = np.frombuffer(run.admitted_s)
    run.admitted_s = made.floats(np.where(np.arange(2000) > 600, np.nan, admitted))
    assert trend(run).verdict == "growing"


def test_rejected_requests_do_not_wait() -> None:
    """What can never fit leaves at once: a run of rejections only has too little to judge."""
    run = queue(0.5, 1, 200, 0)
    run.status = made.ints(np.full(200, REJECTED))
    found = trend(run)
    assert (found.verdict, found.stable) == ("unclear", False)
    assert "too few" in found.reason


def test_the_reason_says_what_to_know() -> None:
    """Growing says by how much of the traffic; steady is stable."""
    growing, steady = trend(queue(1.3, 1, 3000, 2)), trend(queue(0.3, 1, 3000, 2))
    assert "unstable: the backlog grows by" in growing.reason
    assert steady.stable
    assert isinstance(steady, Balance)
