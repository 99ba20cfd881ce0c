"""The limits that ``trtllm-bench throughput`` sets where none are given, and the requests of NVIDIA's overview page.

Read in TensorRT-LLM 1.0, whose page of figures gives the command without limits: ``bench/build/tuning.py``
(``calc_engine_setting``, ``finetune_setting``), ``bench/build/dataclasses.py`` (``get_param_count``: what the
checkpoint's tensors hold, two packed FP4 values counted as one), ``bench/benchmark/utils/general.py``
(``get_settings``: without chunked context a step takes the longest prompt beside a full batch).
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from servewise.deployment.deployment import Deployment
from servewise.modelspec.kv import kv_bytes_per_token
from servewise.modelspec.weights import quantised_parameters

MOST_AT_ONCE, MOST_TOKENS, LEAST_BATCH, LEAST_TOKENS = 4096, 32_768, 64, 2048
PACKED_BITS = 4.5
KV_SHARE = 0.9  # the command's default; the page also used 0.95 "in many cases", without saying in which
# docs/source/performance/perf-overview.md, "Preparing a Dataset": requests by prompt and output tokens.
REQUESTS = {
    (128, 128): 30_000,
    (128, 2048): 3000,
    (128, 4096): 1500,
    (500, 2000): 3000,
    (1000, 1000): 3000,
    (1000, 2000): 1500,
    (2048, 128): 3000,
    (2048, 2048): 1500,
    (5000, 500): 1500,
    (20_000, 2000): 1000,
}


class BenchLimits(NamedTuple):
    """Of one micro-batch, of which there are as many as pipeline stages."""

    max_batch_size: int
    max_num_tokens: int


def limits_of(deployment: Deployment, prompt: int, output: int) -> BenchLimits:
    """What the command derives from the model, the cards' memory and the lengths."""
    split = deployment.parallelism
    ranks = split.tensor * split.pipeline
    free = deployment.accelerator.memory_bytes * ranks - counted_bytes(deployment)
    held = free * KV_SHARE / (kv_bytes_per_token(deployment.model, deployment.kv) * (prompt + output))
    batch = min(held, MOST_AT_ONCE) / split.pipeline
    tokens = min(batch * (1 + prompt / output), MOST_TOKENS)
    size = _batch(batch)
    return BenchLimits(size, max(_tokens(tokens), prompt + size))


def counted_bytes(deployment: Deployment) -> float:
    """The command's estimate of the weights: elements of the checkpoint's tensors x bytes of its format."""
    model, packed = deployment.model, quantised_parameters(deployment.model)
    if deployment.stored_weights.bits > PACKED_BITS:
        return float(model.parameters)
    return (packed * (1 / 2 + 1 / 16) + model.parameters - packed) * 0.5  # two a byte, a scale for 16, the rest 16 bits


def _batch(raw: float) -> int:
    if raw < 256:
        return max(LEAST_BATCH, 32 * ceil(raw / 32))
    unit = 128 if raw < 1024 else 256
    return unit * ceil(raw / unit)


def _tokens(raw: float) -> int:
    if raw < 4096:
        return max(LEAST_TOKENS, 256 * ceil(raw / 256))
    unit = 512 if raw < 8192 else 1024
    return unit * ceil(raw / unit)
