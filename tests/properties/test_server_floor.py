"""The whole-server estimator keeps the estimators' contract for any coefficients, model, device, split and shape."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.test_step_floor import SLACK, deployments, shapes

from servewise.steptime.server_coefficients import BOUNDS, ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline
from servewise.steptime.shape import StepShape, add_chunk, decode_shape
from servewise.steptime.work import work_of


@st.composite
def clocks(draw: st.DrawFn) -> ServerRoofline:
    """An estimator of any deployment with any coefficients within their bounds."""
    values = {name: draw(st.floats(low, high)) for name, (low, high) in BOUNDS.items()}
    return ServerRoofline(draw(deployments()), ServerCoefficients(**values))


@st.composite
def steps(draw: st.DrawFn) -> tuple[ServerRoofline, StepShape]:
    """An estimator and a step of its deployment."""
    clock = draw(clocks())
    return clock, draw(shapes(clock.window_tokens))


@given(steps())
@settings(max_examples=200, deadline=None)
def test_never_below_the_floor(step: tuple[ServerRoofline, StepShape]) -> None:
    """A step takes at least bytes / bandwidth and, at the device's highest peak, FLOPs / peak."""
    clock, shape = step
    work, accelerator = work_of(clock.deployment), clock.deployment.accelerator
    moved = work.weight_bytes(shape.tokens, shape.logit_rows) + work.kv_bytes(shape)

    assert clock.seconds(shape) >= SLACK * moved / accelerator.bandwidth_bytes_per_s
    assert clock.seconds(shape) >= SLACK * work.flops(shape) / max(peak.value for peak in accelerator.peaks.values())
    assert clock.seconds(shape) >= SLACK * clock.step(shape).floor_s


@given(steps())
@settings(max_examples=200, deadline=None)
def test_parts_lie_within_the_step(step: tuple[ServerRoofline, StepShape]) -> None:
    """The parts are finite, not negative, within the step, and the step is the one that ``seconds`` gives."""
    clock, shape = step
    parts = clock.step(shape)

    assert parts.step_s == clock.seconds(shape)
    for each in (parts.compute_s, parts.memory_s, parts.overhead_s):
        assert math.isfinite(each)
        assert 0.0 <= each <= parts.step_s / SLACK


@given(clocks(), st.integers(1, 1024), st.integers(1, 200_000))
@settings(max_examples=200, deadline=None)
def test_decode_is_the_largest_line(clock: ServerRoofline, batch: int, context: int) -> None:
    """A pure decode step is the maximum of its lines, to rounding."""
    shape = decode_shape(batch, context, clock.window_tokens)
    largest = max(
        base + full * shape.decode_context_tokens + windowed * shape.decode_windowed_tokens
        for base, full, windowed in clock.decode_lines(batch)
    )

    assert math.isclose(largest, clock.seconds(shape), rel_tol=1e-12)


@given(steps(), st.data())
@settings(max_examples=200, deadline=None)
def test_more_work_never_takes_less_time(step: tuple[ServerRoofline, StepShape], data: st.DataObject) -> None:
    """Adding a decoding sequence, context, or a prompt chunk never shortens the step."""
    clock, shape = step
    window, context = clock.window_tokens, data.draw(st.integers(1, 100_000))
    seen = min(context, window or context)
    more = [
        shape._replace(
            decode_sequences=shape.decode_sequences + 1,
            decode_context_tokens=shape.decode_context_tokens + context,
            decode_windowed_tokens=shape.decode_windowed_tokens + seen,
            logit_rows=shape.logit_rows + 1,
        ),
        add_chunk(shape, context, data.draw(st.integers(1, 8192)), window),
    ]

    assert all(clock.seconds(each) >= SLACK * clock.seconds(shape) for each in more)
