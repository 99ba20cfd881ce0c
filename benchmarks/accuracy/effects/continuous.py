"""Continuous over static batching: the comparison that made it known (Anyscale, June 2023), and Orca's.

Anyscale: OPT-13B on one A100 40 GB, 1,000 requests at once, 512 tokens in, output lengths exponential of mean 128 cut
at 1,536. Over static batching by Hugging Face pipelines: FasterTransformer (static, optimised kernels) 4 times the
tokens/s, continuous batching with reserved memory (text-generation-inference, Ray Serve) 8 times, vLLM 23 times.
Kernels aside, continuous batching is 8 / 4 = 2 over static, and paging makes it 23 / 4 = 5.75. Here all three run by
one clock, so that only the batching differs.
"""

from __future__ import annotations

from statistics import mean

import numpy as np

from benchmarks.accuracy.effects import orca
from benchmarks.accuracy.effects.common import clock, deployment, run, tokens_per_s
from benchmarks.accuracy.effects.effect import Effect
from benchmarks.accuracy.effects.orca import Orca
from servewise.batching.policies import Continuous, Policy, Static
from servewise.steptime.estimator import Estimator
from servewise.workload.request import Request

KV_TOKENS, CONTEXT, REQUESTS, SEEDS = 15_700, 2048, 1000, 3
SOURCE = "Anyscale, How continuous batching enables 23x throughput in LLM inference, 2023-06-22"
CONDITIONS = "OPT-13B bf16, A100 40 GB, 1,000 requests at once, 512 in, exponential out (mean 128, at most 1,536)"


def effects() -> list[Effect]:
    """Both factors over static batching."""
    estimator = clock(deployment("opt-13b", "a100-40gb", context=CONTEXT))
    batch = KV_TOKENS // CONTEXT
    static, reserved, paged = (
        mean(_rate(estimator, policy, size, seed) for seed in range(SEEDS))
        for policy, size in (
            (Static(batch), 1),
            (Orca(orca.most), 1),
            (Continuous(256, 8192, chunked_prefill=False), 16),
        )
    )
    return [
        _effect("tokens/s, continuous over static, memory reserved", "8 / 4 = 2 times", 1.5, 2.7, reserved / static),
        _effect("tokens/s, continuous and paged over static", "23 / 4 = 5.75 times", 4.3, 7.7, paged / static),
    ]


def _effect(name: str, published: str, low: float, high: float, ours: float) -> Effect:
    return Effect(name=name, conditions=CONDITIONS, published=published, source=SOURCE, low=low, high=high, ours=ours)


def _rate(estimator: Estimator, policy: Policy, size: int, seed: int) -> float:
    outputs = np.clip(np.random.default_rng(seed).exponential(128, REQUESTS), 1, 1536).astype(int).tolist()
    requests = (Request(serial, 0.0, 512, each) for serial, each in enumerate(outputs))
    return tokens_per_s(run(requests, policy, estimator, KV_TOKENS // size, size))
