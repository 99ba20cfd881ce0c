"""The host's time beside the accelerator's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.test_step_floor import steps
from tests.simulate.pipelined.made import Straight
from tests.steptime.known import LLAMA_31_8B, deployed

from servewise.batching.policies import Continuous
from servewise.deployment.deployment import Deployment
from servewise.hardware.catalogue import load_accelerator
from servewise.simulate.run import simulate
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.estimator import Estimator
from servewise.steptime.lines import largest
from servewise.steptime.overlap import Host, Hosted, overlapped
from servewise.steptime.pipeline import pipeline_of
from servewise.steptime.shape import StepShape, decode_shape
from servewise.workload.request import Request


@pytest.mark.parametrize(("device_s", "host_s"), [(0.010, 0.004), (0.004, 0.010)])
def test_by_hand(device_s: float, host_s: float) -> None:
    """100 decode steps: each takes device + host in turn, and the longer of the two with overlap."""
    for overlaps, step_s in [(False, device_s + host_s), (True, max(device_s, host_s))]:
        clock = Hosted(Straight(device_s), Host(host_s), overlaps=overlaps)
        run = simulate([Request(0, 0.0, 10, 101)], Continuous(), clock).requests

        assert (run.end_s[0] - run.first_token_s[0]) / 100 == pytest.approx(step_s)


def test_the_host_pays_for_each_sequence() -> None:
    """Of 50 us a step and 2 us a sequence, 100 sequences take 250 us: only then a step of 200 us is held up."""
    clock = Hosted(Straight(200e-6), Host(50e-6, 2e-6))

    assert clock.seconds(decode_shape(10, 100)) == 200e-6
    assert clock.seconds(decode_shape(100, 100)) == pytest.approx(250e-6)


def test_of_a_calibrated_engine() -> None:
    """What was fitted as the engine's time between steps no longer adds, and nothing falls under the kernels."""
    plain = calibrated_roofline(deployed(LLAMA_31_8B, load_accelerator("h100-sxm")))
    hidden, shape = overlapped(plain), decode_shape(16, 1000)
    between = plain.coefficients.step_overhead_s

    assert hidden.seconds(shape) == pytest.approx(max(plain.seconds(shape) - between, between))
    assert hidden.seconds(shape) >= plain.floor.seconds(shape)


@settings(max_examples=60, deadline=None)
@given(steps(), st.floats(0, 0.1), st.floats(0, 1e-3), st.booleans(), st.integers(1, 512), st.integers(1, 100_000))
def test_a_host_beside_any_estimator(
    step: tuple[Deployment, Estimator, StepShape],
    host_s: float,
    sequence_s: float,
    overlaps: bool,
    batch: int,
    context: int,
) -> None:
    """Never under the device, the host or the floor; decode steps are lines; overlap is never slower than in turn."""
    _, device, shape = step
    clock, in_turn = (Hosted(device, Host(host_s, sequence_s), overlaps=each) for each in (overlaps, False))
    seconds = clock.seconds(shape)
    decode = decode_shape(batch, context, device.window_tokens)

    assert seconds >= max(device.seconds(shape), host_s, clock.step(shape).floor_s * (1 - 1e-12))
    assert seconds <= in_turn.seconds(shape)
    assert clock.step(shape).step_s == seconds
    found = largest(clock.decode_lines(batch), decode.decode_context_tokens, decode.decode_windowed_tokens)
    assert math.isclose(found, clock.seconds(decode), rel_tol=1e-9)


def test_in_a_pipeline_the_host_feeds_the_first_stage() -> None:
    """Each batch waits for the host where that takes longer than the first stage, and only there."""
    where = deployed(LLAMA_31_8B, load_accelerator("h100-sxm"), pipeline=2)
    plain = calibrated_roofline(where)
    shape = decode_shape(4, 100)
    stages, hosted = pipeline_of(where, plain).stages, pipeline_of(where, Hosted(plain, Host(0.5))).stages

    assert hosted[0].seconds(shape) == 0.5
    assert hosted[1].seconds(shape) == stages[1].seconds(shape)
