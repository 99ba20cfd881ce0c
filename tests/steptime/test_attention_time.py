"""Attention kernels: never below their own bytes and FLOPs, and right for windows, latents and states."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.steptime.known import FP8, LLAMA_2_7B, LLAMA_31_8B, deployed
from tests.steptime.test_work import mixture

from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.modelspec.spec import ModelSpec
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.attention import attention_layers
from servewise.steptime.attention_time import AttentionTime
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.shape import StepShape, decode_shape

CONTEXTS = (1, 30, 100, 300, 1000, 3000, 10_000, 100_000)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("model", [LLAMA_2_7B, LLAMA_31_8B], ids=lambda each: each.name)
@pytest.mark.parametrize("chip", ["a100-80gb", "h100-sxm", "h200", "l40s"])
def test_decode_attention_reads_no_faster_than_the_memory(chip: str, model: ModelSpec, engine: str) -> None:
    """At every context the kernels take at least KV bytes / bandwidth, also on L40S, whose line starts below zero."""
    device = load_accelerator(chip)
    where = deployed(model, device, engine=engine)
    lines = AttentionTime(where, coefficients_for(where).coefficients).lines(16)
    per_token = sum(count * each.kv_bytes for count, each in attention_layers(where)) / device.bandwidth_bytes_per_s

    for context in CONTEXTS:
        assert max(line.base_s + line.per_context_token_s * 16 * context for line in lines) >= 16 * context * per_token


def test_decode_attention_computes_no_faster_than_its_efficiency() -> None:
    """MLA decodes 128 heads on one latent: at long contexts arithmetic, not memory, sets the time."""
    device = load_accelerator("h200")
    where = deployed(load_model("deepseek-v3"), device, tensor=1, weights=FP8)
    known = coefficients_for(where).coefficients
    lines = AttentionTime(where, known).lines(32)
    flops = sum(count * each.decode.full for count, each in attention_layers(where)) * 32 * 100_000
    seconds = max(line.base_s + line.per_context_token_s * 32 * 100_000 for line in lines)

    assert seconds >= flops / (known.attention.flop_efficiency * device.peak_flops("bf16")) * (1 - 1e-12)


def test_windowed_layers_stop_growing() -> None:
    """gpt-oss: beyond the window only the full layers' reads grow, half of all."""
    estimator = calibrated_roofline(deployed(load_model("gpt-oss-20b"), load_accelerator("h100-sxm")))
    assert estimator.window_tokens == 128
    far, farther = (
        estimator.seconds(decode_shape(64, context, estimator.window_tokens)) for context in (50_000, 100_000)
    )
    one_layer = 2 * 8 * 64 * 2  # keys and values of 8 heads of 64 in bf16
    efficiency = estimator.coefficients.attention.decode.kv_efficiency

    assert farther - far == pytest.approx(64 * 50_000 * 12 * one_layer / 3.35e12 / efficiency, rel=1e-6)


def test_layers_without_attention_take_no_attention_time() -> None:
    """A model whose only layer has no token mixer has no attention kernels."""
    where = deployed(mixture(8, 2), load_accelerator("h100-sxm"))
    time = AttentionTime(where, coefficients_for(where).coefficients)

    assert attention_layers(where) == ()
    assert [tuple(line) for line in time.lines(8)] == [(0.0, 0.0, 0.0)]
    assert time.compute_s(StepShape(8, 800)) == time.memory_s(StepShape(8, 800)) == 0.0


def test_multi_head_models_take_their_own_kernel() -> None:
    """Llama 2's query heads share no keys, Llama 3's do: each reads at the efficiency fitted for its kind."""
    where = deployed(LLAMA_2_7B, load_accelerator("h200"), engine="trtllm", weights=FP8, kv=FP8, activations=FP8)
    known = coefficients_for(where).coefficients
    same = replace(known, attention=replace(known.attention, multi_head=known.attention.decode))
    shape = decode_shape(64, 4000)

    assert attention_layers(where)[0][1].multi_head
    assert not attention_layers(deployed(LLAMA_31_8B))[0][1].multi_head
    slow, fast = (AttentionTime(where, each).memory_s(shape) for each in (known, same))
    ratio = known.attention.decode.kv_efficiency / known.attention.multi_head.kv_efficiency
    assert slow / fast == pytest.approx(ratio)
