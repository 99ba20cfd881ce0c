"""What a run was bound by, on servers built to be bound by one thing."""

from __future__ import annotations

import pytest
from tests.plan.made import fixed, llama_13b, server

from servewise.batching.policies import Continuous
from servewise.plan.binding import binding_of


def test_slots_are_what_a_queue_waits_for() -> None:
    """One slot and a backlog: requests wait for it nearly all of the time, and never for memory."""
    one = server(llama_13b(), Continuous(max_sequences=1))
    found = binding_of(one, one.run(fixed(100, 100, 20).at_rate(1000.0)))

    assert found.waits_for_slots > 0.95
    assert found.waits_for_memory == 0
    assert found.mean_batch == pytest.approx(1.0)


def test_memory_is_what_a_queue_waits_for() -> None:
    """Room for four requests of 160 tokens under 256 slots: requests wait although slots are free."""
    one = server(llama_13b(), Continuous(reserve_output=True), blocks=40)
    found = binding_of(one, one.run(fixed(100, 140, 20).at_rate(1000.0)))

    assert found.waits_for_memory > 0.9
    assert found.waits_for_slots == 0
    assert 0.5 < found.kv_peak <= 1.0
    assert found.mean_batch <= 4


def test_decode_is_bound_by_bandwidth_and_prompts_by_arithmetic() -> None:
    """The study: long answers read weights and cache, long prompts multiply matrices."""
    one = server(llama_13b())
    decode = binding_of(one, one.run(fixed(20, 10, 400).at_rate(0.5)))
    prefill = binding_of(one, one.run(fixed(20, 3000, 1).at_rate(0.5)))

    assert (decode.resource, prefill.resource) == ("bandwidth", "compute")


def test_little_load_waits_for_nothing() -> None:
    """Requests far apart neither wait nor fill the pool."""
    one = server(llama_13b())
    found = binding_of(one, one.run(fixed(10, 100, 20).at_rate(0.01)))

    assert found.waits_for_memory == found.waits_for_slots == 0
    assert found.kv_peak == pytest.approx(120 / (4000 * 16), rel=0.05)


def test_no_steps_bind_nothing() -> None:
    """A run without requests has no steps, and no division by zero."""
    one = server(llama_13b())

    assert binding_of(one, one.run(())).mean_batch == 0
