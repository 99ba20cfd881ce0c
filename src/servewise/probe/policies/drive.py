"""A real engine driven by arrivals: requests are handed over when their time has come, steps run one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from servewise.batching.policies import Policy
from servewise.engine.running.engine import Engine
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.step import Model
from servewise.probe.ops.machine import waited_s
from servewise.probe.policies.clock import Clock
from servewise.records.columns import RequestColumns, StepColumns
from servewise.simulate.shapes import shape_of
from servewise.steptime.shape import StepShape
from servewise.workload.request import Request

BLOCK_TOKENS = 16
NAP_S = 0.02  # the longest sleep between two looks at a clock that may stand still


class TimedShape(NamedTuple):
    """A step's shape and the seconds from its planning to the next one's, its bookkeeping included."""

    shape: StepShape
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """What a driven run wrote. ``waited``: the share of the wall time that threads waited for a core, if known."""

    requests: RequestColumns
    steps: StepColumns
    shapes: tuple[TimedShape, ...]
    waited: float | None


def prompts_of(requests: Sequence[Request], vocabulary: int, seed: int) -> list[list[int]]:
    """A prompt of random tokens for each request: no two share a prefix."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, vocabulary, each.prompt_tokens).tolist() for each in requests]


def drive(
    model: Model,
    policy: Policy,
    requests: Sequence[Request],
    prompts: Sequence[Sequence[int]],
    *,
    blocks: int,
    clock: Clock,
    ended: Callable[[int], None] | None = None,
) -> Driven:
    """Run ``requests`` (in order of arrival) to their ends through an engine with ``blocks`` KV blocks.

    Replies are greedy and go on to their requested lengths whatever the model says. ``ended`` is told how many have
    ended.
    """
    engine = Engine(model, policy, blocks=blocks, block_tokens=BLOCK_TOKENS, clock=clock)
    window = model.config.window_tokens
    waited_before, began = waited_s(), time.perf_counter()
    shapes: list[TimedShape] = []
    sent = finished = 0
    while sent < len(requests) or not engine.idle:
        start_s = engine.now_s
        while sent < len(requests) and requests[sent].arrival_s <= start_s:
            _submit(engine, requests[sent], prompts[sent])
            sent += 1
        outcome = engine.step()
        if outcome.batch is None:
            _wait(engine, requests[sent].arrival_s if sent < len(requests) else inf)
            continue
        shapes.append(TimedShape(shape_of(outcome.batch, window), engine.now_s - start_s))
        finished += len(outcome.ended)
        if outcome.ended and ended is not None:
            ended(finished)
    wall_s, waited_after = time.perf_counter() - began, waited_s()
    known = waited_before is not None and waited_after is not None and wall_s > 0
    return Driven(
        requests=engine.requests,
        steps=engine.steps,
        shapes=tuple(shapes),
        waited=((waited_after or 0.0) - (waited_before or 0.0)) / wall_s if known else None,
    )


def _submit(engine: Engine, request: Request, prompt: Sequence[int]) -> None:
    settings = SamplingSettings(max_tokens=request.output_tokens, temperature=0.0, ignore_end=True, seed=0)
    engine.submit(prompt, settings, arrival_s=request.arrival_s)


def _wait(engine: Engine, next_s: float) -> None:
    """Let time pass to the next arrival or the policy's own hour; with neither, no more will come."""
    until = min(next_s, engine.wake_s())
    if until == inf:
        engine.close()
    else:
        time.sleep(min(NAP_S, max(0.0, until - engine.now_s)))
