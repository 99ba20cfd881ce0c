"""Small kernels of layers that are not dense, and what the host needs to launch a step by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.kernels import HOST_LAYER_S, extra_s
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.shape import decode_shape, prefill_shape


def _deployment(model: str, tensor: int = 1, *, graphs: bool = True, accelerator: str = "h200") -> Deployment:
    spec, half = load_model(model), FORMATS["bf16"]
    return Deployment(
        model=spec,
        accelerator=load_accelerator(accelerator),
        kv=half,
        activations=FORMATS["fp8"] if spec.weights.name == "fp8" else half,
        engine="sglang",
        parallelism=Parallelism(tensor=tensor),
        limits=Limits(cuda_graphs=graphs),
    )


def _extra(model: str) -> float:
    where = _deployment(model, 8)
    return extra_s(where, coefficients_for(where).coefficients)


def test_dense_layers_have_none() -> None:
    """What the coefficients were fitted on, dense Llama, gets nothing added."""
    assert _extra("llama-3.1-70b") == 0.0


def test_a_routed_layer_adds_what_the_fused_kernels_take_beside_their_products() -> None:
    """A layer of routed experts without a shared one adds routing and the router's launch: 20 to 30 us."""
    layers = load_model("qwen3-30b-a3b").layer_count

    assert 20e-6 < _extra("qwen3-30b-a3b") / layers < 30e-6


def test_llamacpp_launches_more_and_most_with_quantised_weights() -> None:
    """Its unfused graph adds some 25 us a layer, quantising the products' inputs another 15."""
    half = replace(_deployment("llama-3-8b"), engine="llamacpp")
    both = (half, replace(half, weights=FORMATS["int4"]))
    plain, quantised = (extra_s(each, coefficients_for(each).coefficients) / 32 for each in both)

    assert 20e-6 < plain < 30e-6
    assert 10e-6 < quantised - plain < 20e-6


def test_latents_and_shared_experts_come_on_top() -> None:
    """DeepSeek's layers launch more than Qwen3's: latent norms, a shared expert."""
    per_layer = {name: _extra(name) / load_model(name).layer_count for name in ("qwen3-30b-a3b", "deepseek-v3")}

    assert per_layer["deepseek-v3"] > per_layer["qwen3-30b-a3b"] + 10e-6


# DeepSeek-R1-0528 fp8 on eight H200, SGLang 0.5.7, closed loops: (requests at once, mean context, TPOT). In no fit.
# https://github.com/SemiAnalysisAI/InferenceX/issues/870
DEEPSEEK = [(4, 5120, 10.93e-3), (4, 8704, 12.05e-3), (8, 1536, 12.8e-3), (32, 1536, 25.6e-3), (64, 1536, 34.6e-3)]


@pytest.mark.parametrize(("batch", "context", "measured"), DEEPSEEK)
def test_deepseek_on_eight_h200(batch: int, context: int, measured: float) -> None:
    """A step of the largest mixture, predicted from dense kernels and counted launches, is within 15% of a server's."""
    estimator = calibrated_roofline(_deployment("deepseek-r1", 8))

    assert estimator.seconds(decode_shape(batch, context)) == pytest.approx(measured, rel=0.15)


def test_without_graphs_a_small_batch_takes_what_the_host_takes() -> None:
    """Qwen3 14B, eager, one sequence: 20.6 ms a token on an A100 (https://github.com/QwenLM/Qwen3/issues/1536)."""
    where = _deployment("qwen3-14b", graphs=False)
    estimator = calibrated_roofline(replace(where, weights=FORMATS["int4"]))

    assert estimator.seconds(decode_shape(1, 16_000)) == pytest.approx(20.6e-3, rel=0.15)


def test_the_host_is_a_floor_and_no_addition() -> None:
    """A step that keeps the accelerator busy for longer than the host needs is as long with graphs as without."""
    graphs, eager = (calibrated_roofline(_deployment("llama-3.1-8b", graphs=each)) for each in (True, False))
    long = prefill_shape(1, 16_000)

    assert eager.seconds(long) == graphs.seconds(long)
    assert eager.seconds(decode_shape(1, 10)) == HOST_LAYER_S * 32


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize("context", [10, 100_000])
def test_eager_steps_keep_the_contract(batch: int, context: int) -> None:
    """Without graphs too, seconds is the step's and the largest of the decode lines."""
    eager = calibrated_roofline(_deployment("llama-3.1-8b", graphs=False))
    shape = decode_shape(batch, context)
    lines = max(base + slope * shape.decode_context_tokens for base, slope, _ in eager.decode_lines(batch))

    assert eager.seconds(shape) == eager.step(shape).step_s == pytest.approx(lines)
