"""How a request's tokens are chosen; names and defaults as in the OpenAI API and vLLM's extensions of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """``temperature`` 0 is greedy. ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 leave all tokens in.

    ``seed`` makes the request's own random stream; None: drawn by the engine and reported. ``logprobs``: how many
    alternatives to report with each token, None: none at all. ``ignore_end``: go on to ``max_tokens`` (benchmarks).
    """

    max_tokens: int = 128
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    ignore_end: bool = False
