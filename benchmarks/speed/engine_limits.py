"""What this machine could do at best: its read bandwidth and matmul rate, and the least times that they allow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from servewise.engine.compiled.arena import Arena
from servewise.engine.config import DecoderConfig

READ_BYTES, MATMUL_SIZE = 2**28, 2048


class Limits(NamedTuple):
    """Read bandwidth and bf16 matmul rate of the threads in use."""

    bytes_per_s: float
    flops_per_s: float


def seconds(work: Callable[[], object]) -> float:
    """How long ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def limits() -> Limits:
    """Each the best of five: a sum over 256 MiB in huge pages, and a square product."""
    values = Arena().zeros(READ_BYTES // 4, dtype=torch.float32).fill_(1)
    square = torch.ones(MATMUL_SIZE, MATMUL_SIZE, dtype=torch.bfloat16)
    read = min(seconds(values.sum) for _ in range(5))
    multiply = min(seconds(lambda: square @ square) for _ in range(5))
    return Limits(READ_BYTES / read, 2 * MATMUL_SIZE**3 / multiply)


def _layer_weights(c: DecoderConfig) -> int:
    return c.layers * (c.hidden * c.head_dim * (2 * c.heads + 2 * c.kv_heads) + 3 * c.hidden * c.intermediate)


def decode_limit_s(config: DecoderConfig, batch: int, context: int, limit: Limits) -> float:
    """The least time of one decode step: what it must read or compute, whichever takes longer [s]."""
    c = config
    weights = _layer_weights(c) + c.hidden * c.vocabulary
    kv_values = 2 * c.layers * c.kv_heads * c.head_dim * context
    flops = 2 * weights + 4 * c.layers * c.heads * c.head_dim * context
    return max(2 * (weights + batch * kv_values) / limit.bytes_per_s, batch * flops / limit.flops_per_s)


def first_limit_s(config: DecoderConfig, batch: int, prompt: int, limit: Limits) -> float:
    """The least time until ``batch`` prompts have their first tokens; a query sees half the prompt on average [s]."""
    c = config
    head = c.hidden * c.vocabulary
    flops = 2 * prompt * _layer_weights(c) + 2 * head + 2 * c.layers * c.heads * c.head_dim * prompt**2
    return max(2 * (_layer_weights(c) + head) / limit.bytes_per_s, batch * flops / limit.flops_per_s)
