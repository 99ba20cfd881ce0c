"""How each run was set up: as published where it was, else as its points at the lowest load show.

InferenceX (points dated 2025-10-29): benchmarks/70b_fp8_h200_slurm.sh and 70b_{fp4,fp8}_b200_trt_slurm.sh of
https://github.com/SemiAnalysisAI/InferenceX (a267b4b, 409e9a4; 9596d23 in a fork for fp4). 10 requests a client,
lengths uniform from 0.8 of the stated ones, all clients at once at the start, FP8 KV cache, no prefix cache; vLLM with
max-num-batched-tokens 8192 and async scheduling; TensorRT-LLM with max_num_tokens 16384 and, at 1024/1024 below TP8,
batch_wait_timeout_iters 20 with batch_wait_max_tokens_ratio 0.9.

Others: nothing is published. ``SHAPES`` are the candidates from which ``fit_server_overheads`` chooses one a family by
the TTFT of its points at the lowest concurrency (``Point`` of 8), which no split then judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.accuracy.e2e_measured.points import Point

ROUNDS = 10  # requests a client
SPREAD = 0.8  # shortest length of InferenceX's, of the stated one
TELLING = 8  # the concurrency whose points tell the unpublished settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A run's settings.

    ``ahead``: overlap scheduling; ``chunked``: prompts may be split over steps; ``spread``: the shortest length as a
    share of the stated one.
    """

    max_batched_tokens: int
    max_sequences: int
    ahead: bool
    chunked: bool = True
    spread: float = 1.0
    batch_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What may be hidden: how many prompts a step takes, whether it is planned ahead, whether a slot is short.

    ``prompts`` 0: as many as fit 8192 tokens.
    """

    prompts: int
    ahead: bool
    slots_short: int


SHAPES: Mapping[str, Shape] = {
    f"{prompts or '8192 tokens of'} prompt(s) a step, {'planned ahead' if ahead else 'planned at its start'}, "
    f"{'one slot short' if short else 'slots for all'}": Shape(prompts=prompts, ahead=ahead, slots_short=short)
    for prompts in (1, 2, 0)
    for ahead in (True, False)
    for short in (0, 1)
}
MANY = 1024


def settings_of(point: Point, shapes: Mapping[str, str]) -> Settings:
    """The settings of ``point``; ``shapes`` names the family's shape where nothing is published."""
    if point.public:
        return _vllm(point) if point.engine == "vllm" else _trtllm(point)
    shape = SHAPES[shapes[point.family]]
    tokens = shape.prompts * point.prompt_tokens + point.concurrency if shape.prompts else 8192
    slots = point.concurrency - 1 if shape.slots_short else min(MANY, tokens)
    return Settings(max_batched_tokens=max(tokens, slots), max_sequences=slots, ahead=shape.ahead)


def _vllm(point: Point) -> Settings:
    return Settings(max_batched_tokens=8192, max_sequences=point.concurrency, ahead=True, spread=SPREAD)


def _trtllm(point: Point) -> Settings:
    held = point.prompt_tokens == point.output_tokens == 1024 and point.tensor < 8
    return Settings(
        max_batched_tokens=16_384, max_sequences=2048, ahead=True, chunked=False, spread=SPREAD, batch_waiting=held
    )
