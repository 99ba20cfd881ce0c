"""A step by pipeline stages."""

from __future__ import annotations

import pytest
from tests.steptime.known import LLAMA_31_70B, accelerator, deployed

from servewise.hardware.catalogue import load_accelerator
from servewise.steptime.api import estimator_for
from servewise.steptime.hop import hop_of
from servewise.steptime.lines import largest
from servewise.steptime.link import link_time
from servewise.steptime.pipeline import pipeline_of
from servewise.steptime.shape import StepShape, add_chunk, decode_shape, prefill_shape

SHAPES = [decode_shape(1, 100), decode_shape(64, 3000), prefill_shape(2, 700), add_chunk(decode_shape(8, 500), 100, 50)]


def test_one_stage_is_the_whole() -> None:
    """Without pipeline parallelism the estimator is left as it is, and nothing is handed on."""
    estimator = estimator_for(deployed())
    pipeline = pipeline_of(deployed(), estimator)

    assert pipeline.stages == (estimator,)
    assert pipeline.hop is None


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pipeline", [2, 3, 4])
def test_stages_sum_to_the_whole(shape: StepShape, pipeline: int) -> None:
    """The stages of a calibrated step take together what the same layers take on one accelerator."""
    split = deployed(LLAMA_31_70B, load_accelerator("h100-sxm"), pipeline=pipeline)
    whole = estimator_for(deployed(LLAMA_31_70B, load_accelerator("h100-sxm")))
    stages = pipeline_of(split, estimator_for(split)).stages

    assert sum(stage.seconds(shape) for stage in stages) == pytest.approx(whole.seconds(shape), rel=1e-12)
    for stage in stages:
        assert stage.step(shape).step_s == stage.seconds(shape)
        assert stage.step(shape).floor_s <= stage.seconds(shape)


@pytest.mark.parametrize("kind", ["ideal", "calibrated"])
def test_decode_lines_of_stages(kind: str) -> None:
    """Each stage's decode step is the largest of its lines, and the pipeline's that of all stages and hops."""
    split = deployed(LLAMA_31_70B, load_accelerator("l40s"), pipeline=4)
    pipeline = pipeline_of(split, estimator_for(split, kind))
    for batch, context in [(1, 1), (7, 900), (64, 4000)]:
        shape = decode_shape(batch, context)
        lines = [(each.decode_lines(batch), each.seconds(shape)) for each in pipeline.stages]
        for found, seconds in [*lines, (pipeline.decode_lines(batch), pipeline.seconds(shape))]:
            at = largest(found, shape.decode_context_tokens, shape.decode_windowed_tokens)
            assert at == pytest.approx(seconds, rel=1e-12)


def test_ideal_stages_by_hand() -> None:
    """80 layers in 4 stages: each reads a quarter of the layers' 68.5e9 parameters and of the KV, the last the head."""
    split = deployed(LLAMA_31_70B, accelerator(bandwidth=2e12), engine="ideal", pipeline=4)
    pipeline = pipeline_of(split, estimator_for(split, "ideal"))
    layer = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * 8192
    read = 20 * layer * 2 + 20 * 2 * 1024 * 2 * 1000  # bf16 weights and KV of 1,000 tokens
    seconds = [stage.seconds(decode_shape(1, 1000)) for stage in pipeline.stages]

    assert pipeline.hop is None
    assert seconds[1] == seconds[2] == pytest.approx(read / 2e12)
    assert seconds[0] == pytest.approx((read + 8192 * 2) / 2e12)  # a row of the embedding
    assert seconds[3] == pytest.approx((read + 128256 * 8192 * 2) / 2e12)


def test_a_hop_by_hand() -> None:
    """vLLM hands on hidden states and residual in 16 bits, a slice from each tensor-parallel rank."""
    split = deployed(LLAMA_31_70B, load_accelerator("h100-sxm"), tensor=2, pipeline=2)
    one = deployed(LLAMA_31_70B, load_accelerator("h100-sxm"), engine="trtllm", pipeline=2)

    assert hop_of(split).bytes_per_token == 2 * 8192 * 2 / 2
    assert hop_of(one).bytes_per_token == 8192 * 2
    assert hop_of(one).seconds(4096) == link_time("h100-sxm").seconds(4096 * 8192 * 2)
    assert hop_of(one, link_time("InfiniBand NDR")).seconds(64) > hop_of(one).seconds(64)


def test_no_link_hops_over_a_network() -> None:
    """Accelerators whose link nobody names are joined by 10 Gb/s Ethernet."""
    split = deployed(LLAMA_31_70B, accelerator(), pipeline=2)

    assert hop_of(split).link == link_time("Ethernet 10G")


def test_stages_of_a_served_engine_sum_to_it_without_hops() -> None:
    """What a server adds to its kernels is shared out too, and hops are counted once."""
    one, split = (deployed(LLAMA_31_70B, load_accelerator("h100-sxm"), pipeline=pipeline) for pipeline in (1, 4))
    whole, stages = estimator_for(one, "served"), pipeline_of(split, estimator_for(split, "served")).stages

    for shape in SHAPES:
        assert sum(stage.seconds(shape) for stage in stages) == pytest.approx(whole.seconds(shape), rel=1e-9)


def test_the_whole_estimator_counts_the_same_hops() -> None:
    """The calibrated step of a deployment in stages is its stages and hops, so sizes and simulations agree."""
    split = deployed(LLAMA_31_70B, load_accelerator("h100-sxm"), pipeline=4)
    estimator = estimator_for(split)

    for shape in SHAPES:
        assert pipeline_of(split, estimator).seconds(shape) == pytest.approx(estimator.seconds(shape), rel=1e-9)
