"""Bytes and FLOPs of a step against hand calculation, and the kernels' against the step's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.properties.test_step_floor import deployments
from tests.steptime.known import BF16, FP8, LLAMA_2_7B, LLAMA_31_70B, deployed

from servewise.deployment.deployment import Deployment
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers, ModelSpec
from servewise.precision import FORMATS
from servewise.steptime.attention import attention_layers
from servewise.steptime.gemms import head_gemm, layer_gemms
from servewise.steptime.shape import StepShape, decode_shape, prefill_shape
from servewise.steptime.work import compute_formats, work_of

LAYERS_7B = 32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)
HEAD_7B = 32000 * 4096


def test_llama_2_7b_counts() -> None:
    """Llama-2-7B: 6,738,415,616 parameters as published; a step reads all but the embedding table and the last norm."""
    work = work_of(deployed())

    assert LLAMA_2_7B.parameters == 6_738_415_616
    assert work.weight_bytes(1, 1) == 2 * (6_738_415_616 - HEAD_7B - 4096) + 2 * 4096
    assert work.dense_weight_bytes == 2 * LAYERS_7B
    assert work.kv_bytes(decode_shape(3, 100)) == 3 * 100 * 524_288
    assert work.flops(decode_shape(1, 100)) == 2 * (LAYERS_7B + HEAD_7B) + 100 * 32 * 4 * 4096


def test_prefill_counts_pairs_and_one_row() -> None:
    """A prompt of n tokens has n (n + 1) / 2 pairs and one row of logits; a chunk that ends no prompt has none."""
    work = work_of(deployed())
    inside = prefill_shape(1, 512)._replace(logit_rows=0)

    assert work.flops(prefill_shape(1, 512)) == 512 * 2 * LAYERS_7B + 2 * HEAD_7B + 512 * 513 // 2 * 32 * 4 * 4096
    assert work.weight_bytes(512, 1) - work.weight_bytes(512, 0) == 2 * HEAD_7B
    assert work.flops(prefill_shape(1, 512)) - work.flops(inside) == 2 * HEAD_7B


def test_tensor_parallel_shares_out_until_kv_heads_run_out() -> None:
    """Eight KV heads over sixteen ranks: each rank holds one whole head, and a sixteenth of everything else."""
    one, eight, sixteen = (work_of(deployed(LLAMA_31_70B, tensor=n)) for n in (1, 8, 16))

    assert eight.kv_bytes_per_token == one.kv_bytes_per_token / 8
    assert sixteen.kv_bytes_per_token == one.kv_bytes_per_token / 8
    assert sixteen.dense_weight_bytes == pytest.approx(one.dense_weight_bytes / 16)
    assert sixteen.flops(prefill_shape(1, 64)) == pytest.approx(one.flops(prefill_shape(1, 64)) / 16)


def test_fp8_weights_leave_embedding_and_head_in_bf16() -> None:
    """Engines quantise the layers' matrices only: the head of an fp8 model is read in 16 bits."""
    work = work_of(deployed(weights=FP8))

    assert work.head_bytes == 2 * HEAD_7B
    assert work.dense_weight_bytes == LAYERS_7B + 32 * 2 * 4096  # norms in 16 bits


@pytest.mark.parametrize(
    ("weights", "activations", "linear"),
    [
        ("bf16", "bf16", "bf16"),
        ("fp8", "bf16", "bf16"),
        ("fp8", "fp8", "fp8"),
        ("int4", "bf16", "bf16"),
        ("nvfp4", "nvfp4", "fp4"),
    ],
)
def test_products_run_in_the_wider_operand(weights: str, activations: str, linear: str) -> None:
    """Weight-only quantisation computes in the activations' format."""
    where = deployed(weights=FORMATS[weights], activations=FORMATS[activations])

    assert compute_formats(where).linear == linear


def mixture(experts: int, per_token: int) -> ModelSpec:
    """One layer of routed experts of 1,000,000 parameters, and nothing else that matters."""
    part = FeedForward(experts=experts, experts_per_token=per_token, expert_parameters=1_000_000)
    return ModelSpec(
        name="mixture",
        family="test",
        layers=(Layers(count=1, attention=Attention(kind=AttentionKind.NONE), feed_forward=part),),
        hidden_size=1000,
        vocab_size=1000,
        embedding_parameters=0,
        head_parameters=1_000_000,
        final_norm_parameters=0,
        max_context_tokens=None,
        weights=BF16,
        dtype=BF16,
    )


def test_expected_distinct_experts() -> None:
    """A token reads k experts, many tokens all of them, n tokens E (1 - (1 - k/E)^n)."""
    work = work_of(deployed(mixture(128, 8)))
    read = [work.weight_bytes(n, 0) / 2e6 for n in (1, 16, 10_000)]

    assert read == pytest.approx([8.0, 128 * (1 - (120 / 128) ** 16), 128.0], rel=1e-9)


def test_expert_parallel_spreads_experts_over_replicas() -> None:
    """Four replicas share 128 experts: each holds 32, and the tokens of all four call on them."""
    work = work_of(deployed(mixture(128, 8), data=4, expert=True))

    assert work.weight_bytes(10_000, 0) == pytest.approx(32 * 2e6)
    assert work.weight_bytes(1, 0) == pytest.approx(32 * (1 - (120 / 128) ** 4) * 2e6)
    assert work.flops_per_token == 8 * 2e6


@given(deployments())
@settings(max_examples=150, deadline=None)
def test_kernels_add_up_to_the_step(deployment: Deployment) -> None:
    """The products and attention kernels read and compute what the whole step does, no byte more or less."""
    work, shape = work_of(deployment), StepShape(7, 7000, 900, 2, 60, 500, 300, 8000, 4000, 9)
    gemms, layers, head = layer_gemms(deployment), attention_layers(deployment), head_gemm(deployment)
    tokens = shape.tokens
    read = sum(g.calls * g.weights.bytes * (1 - g.weights.unread**tokens) for g in gemms) + head.weights.bytes
    kept = sum(
        count
        * (
            each.kv_bytes * (shape.decode_context_tokens + shape.prefill_context_tokens)
            + each.windowed_kv_bytes * (shape.decode_windowed_tokens + shape.prefill_windowed_tokens)
            + each.state_bytes * (shape.decode_sequences + shape.prefill_sequences)
        )
        for count, each in layers
    )
    flops = sum(g.calls * g.flops_per_token for g in gemms) * tokens + head.flops_per_token * shape.logit_rows
    flops += sum(
        count
        * (
            each.decode.full * shape.decode_context_tokens
            + each.decode.windowed * shape.decode_windowed_tokens
            + each.prefill.full * shape.prefill_pairs
            + each.prefill.windowed * shape.prefill_windowed_pairs
        )
        for count, each in layers
    )

    assert read + work.embedding_bytes_per_token * tokens == pytest.approx(work.weight_bytes(tokens, 9), rel=1e-9)
    assert kept == pytest.approx(work.kv_bytes(shape), rel=1e-9)
    assert flops == pytest.approx(work.flops(shape), rel=1e-9)
