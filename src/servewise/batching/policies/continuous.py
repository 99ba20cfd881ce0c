"""Continuous batching: ended sequences leave and waiting ones join at every step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Continuous:
    """Up to ``max_sequences`` at once, up to ``max_batched_tokens`` new tokens a step.

    ``chunked_prefill``: a prompt may be split over steps, decode first (vLLM v1); otherwise whole prompts run in
    steps of their own, ahead of decode (vLLM v0, Orca). ``reserve_output``: blocks for prompt and output are taken
    at admission, so that nothing is ever preempted; otherwise blocks grow and the youngest is preempted by
    recompute when they run out. ``prefix_cache``: full blocks are kept by hash, least recently used evicted.
    """

    max_sequences: int = 256
    max_batched_tokens: int = 8192
    chunked_prefill: bool = True
    reserve_output: bool = False
    prefix_cache: bool = False
