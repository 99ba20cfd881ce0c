"""The engine's records go where the simulator's go: Parquet and back, metrics, comparison."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.engine.running.fake import FakeModel

from servewise.batching.policies import Continuous
from servewise.engine.running.engine import Engine
from servewise.engine.sampling_settings import SamplingSettings
from servewise.metrics.summary import summarise
from servewise.records.tables import requests_from_parquet, requests_to_parquet, steps_from_parquet, steps_to_parquet
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.workload.request import Request


def run() -> Engine:
    """Three requests of 2, 5 and 9 tokens, together."""
    model = FakeModel()
    engine = Engine(model, Continuous(2, 64), blocks=50, block_tokens=4, clock=model.clock)
    for tokens in (2, 5, 9):
        engine.submit([1, 2, 3], SamplingSettings(max_tokens=tokens, temperature=0.0))
    engine.run_until_idle()
    return engine


def test_records_are_kept_whole() -> None:
    """Parquet bytes and back: the same columns, token times and the parts of a step included."""
    engine = run()

    assert requests_from_parquet(requests_to_parquet(engine.requests), "") == engine.requests
    assert steps_from_parquet(steps_to_parquet(engine.steps), "") == engine.steps


def test_metrics_read_the_engine_as_they_read_the_simulator() -> None:
    """The same requests in both, 1 s a step: every figure of the summary is equal."""
    engine = run()
    requests = [Request(serial, 0.0, 3, tokens) for serial, tokens in enumerate((2, 5, 9))]
    predicted = simulate(requests, Continuous(2, 64), UnitStep(), blocks=50, block_tokens=4)
    measured = summarise(engine.requests, engine.steps, slots=engine.slots)

    assert measured == summarise(predicted.requests, predicted.steps, slots=2)


def test_new_records_leave_the_old_ones_alone() -> None:
    """A server that runs for days hands its records over and begins new ones."""
    engine = run()
    old = engine.requests
    engine.new_records()
    engine.submit([1], SamplingSettings(max_tokens=1, temperature=0.0))
    engine.run_until_idle()

    assert (len(old), len(engine.requests)) == (3, 1)
