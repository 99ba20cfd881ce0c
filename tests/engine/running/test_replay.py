"""Arrivals in real time: open and closed loop, refusals, an early stop."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.engine.running.fake import Clock, FakeModel, config

from servewise.batching.policies import Continuous, Dynamic, Static
from servewise.engine.running.engine import Engine
from servewise.engine.running.replay import replay
from servewise.engine.sampling_settings import SamplingSettings
from servewise.records.columns import COMPLETED, REJECTED, UNFINISHED
from servewise.simulate.arrivals import ClosedArrivals, OpenArrivals
from servewise.workload.request import Request


def prompt_of(request: Request) -> tuple[list[int], SamplingSettings]:
    """A prompt of the asked length."""
    return [1] * request.prompt_tokens, SamplingSettings(max_tokens=request.output_tokens, temperature=0.0)


def engine_at(clock: Clock, policy: Continuous | Dynamic | Static, context: int = 4096) -> Engine:
    """An engine whose steps take 1 s of ``clock``."""
    return Engine(FakeModel(config(context=context), clock), policy, blocks=50, block_tokens=4, clock=clock)


def test_the_engine_sleeps_to_the_next_arrival() -> None:
    """Two requests 10 s apart, 2 s each: no step runs between."""
    clock = Clock()
    engine = engine_at(clock, Continuous(4, 64))
    replay(engine, OpenArrivals([Request(0, 1.0, 3, 2), Request(1, 11.0, 3, 2)]), prompt_of, wait=clock.wait)

    assert list(engine.steps.start_s) == [1.0, 2.0, 11.0, 12.0]
    assert list(engine.requests.end_s) == [3.0, 13.0]


def test_a_window_wakes_a_dynamic_batch() -> None:
    """One request at 1 s under a window of 4 s and no company: it starts at 5 s."""
    clock = Clock()
    engine = engine_at(clock, Dynamic(8, 4.0))
    replay(engine, OpenArrivals([Request(0, 1.0, 3, 2), Request(1, 30.0, 3, 2)]), prompt_of, wait=clock.wait)

    assert list(engine.requests.admitted_s) == [5.0, 34.0]


def test_a_static_batch_that_cannot_fill_starts_after_the_last_arrival() -> None:
    """Three requests for batches of two: the third runs alone."""
    clock = Clock()
    engine = engine_at(clock, Static(2))
    replay(engine, OpenArrivals([Request(serial, 0.0, 3, 2) for serial in range(3)]), prompt_of, wait=clock.wait)

    assert list(engine.requests.admitted_s) == [0.0, 0.0, 2.0]


def test_clients_wait_for_their_answers() -> None:
    """Two clients with four requests of 2 s, 1 s to think: the next are sent at 3 s."""
    clock = Clock()
    engine = engine_at(clock, Continuous(4, 64))
    requests = [Request(serial, 0.0, 3, 2) for serial in range(4)]
    replay(engine, ClosedArrivals(requests, 2, think_s=1.0), prompt_of, wait=clock.wait)

    assert list(engine.requests.scheduled_s) == [0.0, 0.0, 3.0, 3.0]


def test_a_refused_request_does_not_stop_the_replay() -> None:
    """One prompt fills the context: it is recorded as rejected with the reason, its client sends the next."""
    clock = Clock()
    engine = engine_at(clock, Continuous(4, 64), context=20)
    requests = [Request(0, 0.0, 20, 2), Request(1, 0.0, 3, 2)]
    replay(engine, ClosedArrivals(requests, 1), prompt_of, wait=clock.wait)

    assert list(engine.requests.status) == [REJECTED, COMPLETED]
    assert "context" in engine.requests.errors[0]


def test_a_stop_leaves_the_rest_unfinished() -> None:
    """Stopped after three steps: one request has ended, the other is recorded as unfinished."""
    clock = Clock()
    engine = engine_at(clock, Continuous(4, 64))
    requests = [Request(0, 0.0, 3, 2), Request(1, 0.0, 3, 9)]
    replay(engine, OpenArrivals(requests), prompt_of, wait=clock.wait, until=lambda each: len(each.steps) >= 3)

    assert list(engine.requests.status) == [COMPLETED, UNFINISHED]
