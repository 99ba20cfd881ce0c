"""Chunked prefill against whole prompts: Sarathi-Serve's claim (Agrawal et al., OSDI 2024).

Sections 1 and 5.1: Yi-34B on two A100 80 GB (TP2), arXiv summarisation lengths, Poisson. Whole prompts stall the
decoding requests (generation stalls of seconds); with chunks under a token budget the 99th percentile of the time
between tokens stays near a decode step, and the capacity under a strict limit on it is up to 3.7 times vLLM's. Token
budgets: 512 under the strict limit, 2,048 under the relaxed one.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.effects.common import clock, deployment, poisson
from benchmarks.accuracy.effects.effect import Effect
from servewise.batching.policies import Continuous, Policy
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.metrics.summary import RunSummary, summarise
from servewise.simulate.run import simulate
from servewise.steptime.estimator import Estimator

SOURCE = "Agrawal et al., OSDI 2024, section 5.1"
CONDITIONS = "Yi-34B bf16, 2 x A100 80 GB (TP2), lognormal lengths of arXiv summarisation (7,059 in, 208 out), Poisson"
REQUESTS, STRICT_S = 400, 0.2
WHOLE, CHUNKED = Continuous(128, 8192, chunked_prefill=False), Continuous(128, 512)


def effects() -> list[Effect]:
    """The tail at one rate, and the capacity under the strict limit."""
    of = deployment("yi-34b", "a100-80gb", tensor=2, context=16_384)
    capacity = kv_capacity(of)
    assert isinstance(capacity, KvCapacity)
    estimator, blocks = clock(of), capacity.blocks
    rates = {policy: _sustained(estimator, policy, blocks) for policy in (WHOLE, CHUNKED)}
    shared = rates[CHUNKED]
    tails = {policy: _run(estimator, policy, blocks, shared).itl.p99 for policy in (WHOLE, CHUNKED)}
    return [
        Effect(
            name=f"p99 time between tokens, whole prompts over chunks, at the chunks' {shared:.2f}/s",
            conditions=CONDITIONS,
            published="stalls of seconds against a decode step's time: 2 times and more",
            source=SOURCE,
            low=2.0,
            high=100.0,
            ours=tails[WHOLE] / tails[CHUNKED],
        ),
        Effect(
            name="capacity under a p99 of 200 ms between tokens, chunks over whole prompts",
            conditions=CONDITIONS,
            published="up to 3.7 times",
            source=SOURCE,
            low=1.3,
            high=3.7,
            ours=rates[CHUNKED] / rates[WHOLE],
        ),
    ]


def _lengths() -> list[tuple[int, int]]:
    rng = np.random.default_rng(7)
    prompt = np.clip(rng.lognormal(np.log(7059) - 0.2, 0.63, REQUESTS), 64, 15_000)
    output = np.clip(rng.lognormal(np.log(208) - 0.3, 0.77, REQUESTS), 8, 1300)
    return [(int(one), int(two)) for one, two in zip(prompt, output, strict=True)]


def _run(estimator: Estimator, policy: Policy, blocks: int, rate_per_s: float) -> RunSummary:
    found = simulate(poisson(_lengths(), rate_per_s, 3), policy, estimator, blocks=blocks)
    return summarise(found.requests, found.steps)


def _sustained(estimator: Estimator, policy: Policy, blocks: int) -> float:
    """The highest rate whose p99 between tokens keeps the limit and whose requests do not wait over 2 s at the
    median."""
    low, high = 0.01, 10.0
    while high / low > 1.03:
        middle = (low * high) ** 0.5
        found = _run(estimator, policy, blocks, middle)
        waits = found.phases.queue_s if found.phases else 0.0
        low, high = (middle, high) if found.itl.p99 <= STRICT_S and waits <= 2.0 else (low, middle)
    return low
