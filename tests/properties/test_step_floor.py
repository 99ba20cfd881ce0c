"""No estimator predicts a step below what bytes and FLOPs allow, for any model, accelerator, split or shape."""

from __future__ import annotations

import math
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.deployment.deployment import Deployment, Parallelism
from servewise.deployment.expert_load import EVEN, USUAL, Drawn
from servewise.hardware.accelerator import Accelerator, Link, Quantity
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers, ModelSpec
from servewise.precision import FORMATS
from servewise.steptime.api import estimator_for
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.draws import drawn
from servewise.steptime.estimator import Estimator
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.shape import StepShape, add_chunk, decode_shape
from servewise.steptime.work import work_of

SLACK = 1 - 1e-12  # rounding of sums


def quantity(value: float, unit: str) -> Quantity:
    """A number of a made-up device."""
    return Quantity(value, unit, "drawn by the test", "2026-11-29", "assumed")


@st.composite
def accelerators(draw: st.DrawFn) -> Accelerator:
    """A device from a tenth of a CPU to ten times a B200, measured, kin of a measured one, or unknown."""
    peak, bandwidth = draw(st.floats(1e11, 1e17)), draw(st.floats(1e10, 1e14))
    peaks = {"bf16": quantity(peak, "FLOP/s")}
    if draw(st.booleans()):
        peaks["fp8"] = quantity(2 * peak, "FLOP/s")
    link = Link(name="link", bandwidth=quantity(draw(st.floats(1e9, 1e12)), "bytes/s"), latency=quantity(1e-5, "s"))
    return Accelerator(
        name=draw(st.sampled_from(["h100-sxm", "l40s", "made-up"])),
        title="a device",
        memory=quantity(80e9, "bytes"),
        bandwidth=quantity(bandwidth, "bytes/s"),
        peaks=peaks,
        link=draw(st.sampled_from([link, None])),
        kin=draw(st.sampled_from(["h200", "a100-80gb", None])),
    )


@st.composite
def attentions(draw: st.DrawFn, hidden: int) -> Attention:
    """A token mixer of any kind."""
    kind = draw(st.sampled_from(list(AttentionKind)))
    if kind is AttentionKind.NONE:
        return Attention(kind=kind)
    heads = draw(st.integers(1, 64))
    kv_heads, dim = draw(st.sampled_from([1, max(1, heads // 4), heads])), draw(st.sampled_from([32, 64, 128]))
    latent, state = kind is AttentionKind.LATENT, kind is AttentionKind.STATE
    return Attention(
        kind=kind,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=dim,
        window_tokens=draw(st.integers(1, 8192)) if kind in (AttentionKind.SLIDING, AttentionKind.CHUNKED) else None,
        kv_values_per_token=0 if state else 576 if latent else 2 * kv_heads * dim,
        score_width=0 if state else heads * dim,
        value_width=heads * dim,
        state_values=heads * dim * dim if state else 0,
        parameters=2 * hidden * heads * dim + 2 * hidden * kv_heads * dim,
        absorbed_score_width=heads * 576 if latent else 0,
        absorbed_value_width=heads * 512 if latent else 0,
    )


@st.composite
def feed_forwards(draw: st.DrawFn, hidden: int) -> FeedForward:
    """Nothing, a dense feed-forward, or routed experts with or without a shared one."""
    width = draw(st.integers(1, 4)) * hidden
    if not draw(st.booleans()):
        return FeedForward(dense_parameters=draw(st.sampled_from([0, 3 * hidden * width])))
    experts = draw(st.integers(1, 256))
    return FeedForward(
        dense_parameters=draw(st.sampled_from([0, 3 * hidden * width])),
        experts=experts,
        experts_per_token=draw(st.integers(1, experts)),
        expert_parameters=3 * hidden * draw(st.integers(1, hidden)),
    )


@st.composite
def models(draw: st.DrawFn) -> ModelSpec:
    """A decoder of one to three kinds of layer."""
    hidden, vocab = draw(st.sampled_from([64, 576, 2048, 8192])), draw(st.integers(256, 200_000))
    group = st.builds(
        Layers,
        count=st.integers(1, 100),
        attention=attentions(hidden),
        feed_forward=feed_forwards(hidden),
        norm_parameters=st.just(2 * hidden),
    )
    return ModelSpec(
        name="drawn",
        family="drawn",
        layers=tuple(draw(st.lists(group, min_size=1, max_size=3))),
        hidden_size=hidden,
        vocab_size=vocab,
        embedding_parameters=hidden * vocab,
        head_parameters=draw(st.sampled_from([0, hidden * vocab])),
        final_norm_parameters=hidden,
        max_context_tokens=None,
        weights=FORMATS[draw(st.sampled_from(["bf16", "fp8"]))],
        dtype=FORMATS["bf16"],
    )


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    """A model on devices, split and stored in any way, its experts called on evenly or not."""
    tensor, data, model = draw(st.sampled_from([1, 2, 3, 4, 8, 16])), draw(st.sampled_from([1, 8])), draw(models())
    routed = {group.feed_forward.experts for group in model.layers if group.feed_forward.experts}
    filling = -max(routed, default=0) % (tensor * data)  # copies with which ranks hold as many each
    copies = st.sampled_from([None, filling, filling + tensor * data]) if len(routed) == 1 else st.none()
    return Deployment(
        model=model,
        accelerator=draw(accelerators()),
        kv=FORMATS[draw(st.sampled_from(["bf16", "fp8", "int4"]))],
        activations=FORMATS[draw(st.sampled_from(["bf16", "fp8"]))],
        weights=draw(st.sampled_from([None, FORMATS["bf16"], FORMATS["fp8"], FORMATS["int4"], FORMATS["nvfp4"]])),
        engine=draw(st.sampled_from(["vllm", "sglang", "trtllm", "llamacpp", "ideal", "vllm-0.10"])),
        parallelism=Parallelism(
            tensor=tensor,
            pipeline=draw(st.sampled_from([1, 2, 4])),
            data=data,
            expert=draw(st.booleans()),
            decode_context=draw(st.sampled_from([1, tensor])),
            redundant_experts=draw(copies),
        ),
        expert_load=draw(st.sampled_from([USUAL, EVEN, Drawn(0.02)])),
    )


@st.composite
def shapes(draw: st.DrawFn, window: int | None) -> StepShape:
    """A step: decoding sequences, prompt chunks, or both."""
    shape = StepShape()
    batch = draw(st.integers(0, 512))
    if batch:
        shape = decode_shape(batch, draw(st.integers(1, 200_000)), window)
    for _ in range(draw(st.integers(0 if batch else 1, 2))):
        computed, new = draw(st.integers(0, 100_000)), draw(st.integers(1, 16_384))
        shape = add_chunk(shape, computed, new, window, ends_prompt=draw(st.booleans()))
    return shape


@st.composite
def steps(draw: st.DrawFn) -> tuple[Deployment, Estimator, StepShape]:
    """A deployment, one of its estimators, and a step of it."""
    deployment = draw(deployments())
    estimator = estimator_for(deployment, draw(st.sampled_from(["ideal", "calibrated", "served"])))
    return deployment, estimator, draw(shapes(estimator.window_tokens))


@given(steps())
@settings(max_examples=300, deadline=None)
def test_never_below_the_floor(step: tuple[Deployment, Estimator, StepShape]) -> None:
    """A step takes at least bytes / bandwidth and, at the device's highest peak, FLOPs / peak."""
    deployment, estimator, shape = step
    work, accelerator = work_of(deployment), deployment.accelerator
    moved = work.weight_bytes(shape.tokens, shape.logit_rows) + work.kv_bytes(shape)
    seconds = estimator.seconds(shape)

    assert seconds >= SLACK * moved / accelerator.bandwidth_bytes_per_s
    assert seconds >= SLACK * work.flops(shape) / max(peak.value for peak in accelerator.peaks.values())
    assert seconds >= SLACK * estimator.step(shape).floor_s


@given(steps())
@settings(max_examples=200, deadline=None)
def test_parts(step: tuple[Deployment, Estimator, StepShape]) -> None:
    """The parts are finite, not negative, within the step, and the step is the one that ``seconds`` gives."""
    _, estimator, shape = step
    parts = estimator.step(shape)

    assert parts.step_s == estimator.seconds(shape)
    for each in (parts.compute_s, parts.memory_s, parts.overhead_s, parts.communication_s, parts.floor_s):
        assert math.isfinite(each)
        assert each >= 0.0
    assert max(parts.compute_s, parts.memory_s, parts.communication_s) <= parts.step_s / SLACK
    assert parts.bound in ("compute", "memory", "communication", "overhead")


@given(steps(), st.integers(1, 1024), st.integers(1, 200_000))
@settings(max_examples=200, deadline=None)
def test_decode_is_the_largest_line(step: tuple[Deployment, Estimator, StepShape], batch: int, context: int) -> None:
    """A pure decode step is the maximum of its lines, to rounding."""
    _, estimator, _ = step
    shape = decode_shape(batch, context, estimator.window_tokens)
    lines = estimator.decode_lines(batch)
    largest = max(
        line.base_s
        + line.per_context_token_s * shape.decode_context_tokens
        + line.per_windowed_token_s * shape.decode_windowed_tokens
        for line in lines
    )

    assert math.isclose(largest, estimator.seconds(shape), rel_tol=1e-12)


@given(steps(), st.data())
@settings(max_examples=300, deadline=None)
def test_more_work_never_takes_less_time(step: tuple[Deployment, Estimator, StepShape], data: st.DataObject) -> None:
    """Adding a decoding sequence, context, or a prompt chunk never shortens the step."""
    _, estimator, shape = step
    window = estimator.window_tokens
    context = data.draw(st.integers(1, 100_000))
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
    if shape.decode_sequences:
        more.append(shape._replace(decode_context_tokens=shape.decode_context_tokens + context))
    seconds = estimator.seconds(shape)

    assert all(estimator.seconds(each) >= SLACK * seconds for each in more)


@given(deployments(), st.integers(0, 2**32), st.data())
@settings(max_examples=100, deadline=None)
def test_draws_respect_the_floor(deployment: Deployment, seed: int, data: st.DataObject) -> None:
    """However the coefficients are drawn within their doubt, no step beats physics."""
    estimator = CalibratedRoofline(deployment, drawn(coefficients_for(deployment), Random(seed)))
    shape = data.draw(shapes(estimator.window_tokens))

    assert estimator.seconds(shape) >= SLACK * estimator.floor.seconds(shape)


@given(deployments(), st.data())
@settings(max_examples=100, deadline=None)
def test_memoised_steps_do_not_depend_on_history(deployment: Deployment, data: st.DataObject) -> None:
    """A step takes the same time on a fresh estimator and on one that has seen other steps."""
    used = estimator_for(deployment)
    known = data.draw(st.lists(shapes(used.window_tokens), min_size=2, max_size=4))
    first = [used.seconds(each) for each in known]

    assert [used.seconds(each) for each in reversed(known)] == first[::-1]
    assert [estimator_for(deployment).seconds(each) for each in known] == first
