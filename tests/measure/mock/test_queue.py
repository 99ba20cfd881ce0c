"""Fixed slots with a queue: the truth that a saturation test needs."""

from __future__ import annotations

import heapq
import http.client
import json
import random
import threading
import time
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock
from servewise.measure.mock.slots import Slots


def ask(server: RunningMock, tokens: int) -> int:
    """One completion, read to its end; its status."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    body = {"model": "mock", "prompt": "a", "max_tokens": tokens, "stream": True}
    try:
        connection.request("POST", "/v1/completions", json.dumps(body))
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def ask_at(server: RunningMock, times_s: list[float], tokens: int) -> list[int]:
    """Requests at the given times, each in a thread of its own; their statuses."""
    statuses: list[int] = []
    begun = time.monotonic()

    def one(after_s: float) -> None:
        time.sleep(max(0.0, begun + after_s - time.monotonic()))
        statuses.append(ask(server, tokens))

    threads = [threading.Thread(target=one, args=(after_s,)) for after_s in times_s]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return statuses


@pytest.mark.parametrize("slots", [1, 3])
def test_service_begins_as_the_recursion_says(slots: int) -> None:
    """Kiefer and Wolfowitz: each request begins when it came or when the earliest slot was free, whichever is later.

    Held exactly, since the schedule counts in due times: the machine's lateness is not in it.
    """
    tokens, plan = 5, MockPlan(first_s=(0.02, 0.02), gap_s=0.005, slots=slots)
    service_s = 0.02 + (tokens - 1) * 0.005
    rng = random.Random(slots)
    with running_mock(plan) as server:
        assert set(ask_at(server, [rng.uniform(0, 0.4) for _ in range(30)], tokens)) == {200}
        log = server.log()
    free_s = [-inf] * slots
    for each in sorted(log, key=lambda each: each.serial):
        begin_s = max(each.arrived_s, heapq.heappop(free_s))
        assert each.started_s == pytest.approx(begin_s, abs=1e-9)
        assert each.due_s[0] == pytest.approx(begin_s + 0.02, abs=1e-9)
        heapq.heappush(free_s, begin_s + service_s)


def test_a_full_queue_turns_away() -> None:
    """With one slot and room for two to wait, the fourth that comes at once is answered 429."""
    with running_mock(MockPlan(first_s=(0.3, 0.3), gap_s=0.0, slots=1, queue=2)) as server:
        statuses = ask_at(server, [0.0, 0.0, 0.0, 0.0, 0.0], 1)
    assert sorted(statuses) == [200, 200, 200, 429, 429]


def test_who_goes_away_frees_the_slot() -> None:
    """A client that hangs up while it is served lets the next begin; one that waited no longer waits."""
    with running_mock(MockPlan(first_s=(30.0, 30.0), slots=1)) as server:
        body = json.dumps({"model": "mock", "prompt": "a", "max_tokens": 1}).encode()
        clients = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=20) for _ in range(3)]
        for place, each in enumerate(clients):
            each.request("POST", "/v1/completions", body)
            until = time.monotonic() + 10
            while len(server.log()) <= place and time.monotonic() < until:
                time.sleep(0.005)
        clients[1].close()
        clients[0].close()
        until = time.monotonic() + 10
        while server.log().requests[2].started_s != server.log().requests[2].started_s and time.monotonic() < until:
            time.sleep(0.005)
        first, second, third = server.log()
        clients[2].close()
    assert (first.ended, second.ended, third.ended) == ("gone", "gone", "open")
    assert third.started_s >= first.arrived_s


@settings(deadline=None)
@given(slots=st.integers(1, 4), steps=st.lists(st.tuples(st.booleans(), st.floats(0, 10)), max_size=60))
def test_no_slot_is_shared_or_lost(slots: int, steps: list[tuple[bool, float]]) -> None:
    """Whatever enters and leaves, at most ``slots`` run, none waits while one is free, and order of arrival holds."""
    queue: Slots[int] = Slots(slots)
    running: set[int] = set()
    begun: list[int] = []
    now_s = 0.0
    for serial, (enters, passed_s) in enumerate(steps):
        now_s += passed_s
        if enters:
            free_s = queue.enter(serial)
            if free_s is not None:
                assert free_s <= now_s
                running.add(serial)
                begun.append(serial)
        elif running:
            running.discard(min(running))
            following = queue.leave(now_s)
            if following is not None:
                running.add(following)
                begun.append(following)
        assert queue.running == len(running) <= slots
        assert queue.waiting == 0 or len(running) == slots
    assert begun == sorted(begun)
