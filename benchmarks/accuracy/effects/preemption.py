"""Preemption past saturation: a pool that is too small for the load makes the server compute prompts again.

vLLM's documentation (optimization and tuning, "Preemption"): with too little KV space requests are preempted and
recomputed, "which can adversely affect the end-to-end latency"; the cure it names is more KV space or fewer sequences
at once. Two published runs of one such server (RTX 4090, Llama 3.1 8B, 300 ShareGPT requests at 10/s, far above what it
takes) show the regime. Here: the share of prompt work done again below and above the knee.
"""

from __future__ import annotations

from benchmarks.accuracy.effects.common import clock, deployment, poisson
from benchmarks.accuracy.effects.effect import Effect
from benchmarks.accuracy.effects.lengths import lognormal
from servewise.batching.policies import Continuous, Policy
from servewise.metrics.latency import floats, ints
from servewise.simulate.run import Run, simulate

SOURCE = "vLLM documentation, Optimization and Tuning, 2025"
CONDITIONS = "Llama 3.1 8B bf16, RTX 4090, 2,588 blocks of 16 tokens, lognormal lengths (400 in, 300 out), Poisson"
BLOCKS, REQUESTS = 2588, 1200
FREE, BOUNDED = Continuous(256, 2048), Continuous(48, 2048)


def effects() -> list[Effect]:
    """What happens below and above the knee, and under a bound on sequences."""
    below, above, bounded = _run(FREE, 2.0), _run(FREE, 10.0), _run(BOUNDED, 10.0)
    free, kept = _preempted(above), _preempted(bounded)
    again = _prefill(above) / _prefill(bounded)
    return [
        _effect("preemptions a request, well below the knee", "none to speak of", 0.0, 0.01, _preempted(below)),
        _effect("preemptions a request, in overload", "many", 0.05, 3.0, free),
        _effect("preemptions in overload, 48 sequences over no bound", "few of them left", 0.0, 0.25, kept / free),
        _effect("prefill seconds in overload, no bound over 48 sequences", "prompts computed again", 1.02, 5.0, again),
    ]


def _effect(name: str, published: str, low: float, high: float, ours: float) -> Effect:
    return Effect(name=name, conditions=CONDITIONS, published=published, source=SOURCE, low=low, high=high, ours=ours)


def _run(policy: Policy, rate_per_s: float) -> Run:
    lengths = lognormal(400, 1.0, 300, 0.8, REQUESTS, seed=5)
    estimator = clock(deployment("llama-3.1-8b", "rtx-4090", context=8192))
    return simulate(poisson(lengths, rate_per_s, 5), policy, estimator, blocks=BLOCKS)


def _preempted(run: Run) -> float:
    return float(ints(run.requests.preemptions).mean())


def _prefill(run: Run) -> float:
    return float(floats(run.requests.prefill_s).mean())
