"""The small kernels that a layer launches beyond those of a dense layer with grouped-query attention.

A decode step of few sequences is bound by launches: a layer with latent attention and routed experts launches some
thirty kernels where a dense one launches ten. Counted from vLLM 0.11's decode graph (model_executor/models/
deepseek_v2.py and qwen3_next.py, layers/fused_moe/fused_moe.py); what cannot be told from the config (norms of queries
and keys) is left out.
"""

from __future__ import annotations

from servewise.deployment.deployment import Deployment
from servewise.modelspec.spec import AttentionKind, FeedForward, Layers
from servewise.steptime.coefficients import Coefficients

# The unit in which kernels are counted: of the routed layer's own time (choosing experts, sorting tokens in two steps,
# activation, sum, and what quantises) an eighth, 2.3 us, as a dense layer's four small kernels take 9.1 us.
ROUTED = 8
HALF_BITS = 16
MIXER = {
    AttentionKind.LATENT: 5,  # norms of both latents, joining the query, cache write, merging splits
    AttentionKind.STATE: 4,  # splitting the input, convolution, gates, gated norm
}
SPARSE = 6  # the indexer: norm, rotary positions, quantising, cache write, top-k, indices to slots
SHARED = 2  # activation of the shared expert, addition
# What an engine launches for any layer beyond vLLM. llama.cpp's graph has seven products (vLLM joins query, key and
# value, and gate and up) and twelve elementwise kernels (a norm is two; the activation, the product with the gate and
# each residual's sum are one each), and quantises the input of every product of quantised weights (llama.cpp b2800,
# build_llama and ggml-cuda.cu).
UNFUSED = {"llamacpp": 3 + 8}
QUANTISED_INPUTS = {"llamacpp": 7}
# Without CUDA graphs the host launches each layer itself, slower than most accelerators run it. Median of Llama 2 70B
# on eight A100 (Splitwise's vLLM of 2023, batch 1: 43 to 46.5 ms for 80 layers); Qwen3-14B-AWQ under vLLM 0.8
# --enforce-eager takes 0.52 ms a layer (https://github.com/QwenLM/Qwen3/issues/1536).
HOST_LAYER_S = 0.56e-3


def extra_s(deployment: Deployment, coefficients: Coefficients) -> float:
    """What those kernels take in a step, whatever its tokens [s]."""
    one = coefficients.small.routed_layer_s / ROUTED
    engine = deployment.engine.partition("-")[0]
    every = UNFUSED.get(engine, 0)
    if deployment.stored_weights.bits < HALF_BITS:
        every += QUANTISED_INPUTS.get(engine, 0)
    groups = deployment.model.layers
    return sum(group.count * (every * one + _layer_s(group, coefficients, one)) for group in groups)


def host_s(deployment: Deployment) -> float:
    """The least time of a step: what the host needs to launch it; 0 where CUDA graphs launch it at once [s]."""
    return 0.0 if deployment.limits.cuda_graphs else HOST_LAYER_S * deployment.model.layer_count


def _layer_s(group: Layers, coefficients: Coefficients, one: float) -> float:
    kernels = MIXER.get(group.attention.kind, 0) + (SPARSE if group.attention.attended_tokens else 0)
    if not group.feed_forward.experts:
        return kernels * one
    kernels += SHARED if _shares(group.feed_forward) else 0
    routing = coefficients.small.routed_layer_s + coefficients.gemm.launch_s  # the router is a product of its own
    return kernels * one + routing


def _shares(part: FeedForward) -> bool:
    """Whether every token also enters a shared expert: more dense parameters than a router has."""
    return part.dense_parameters > part.expert_parameters
