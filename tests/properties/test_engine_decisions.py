"""One decision-maker, two clocks: the engine and the simulator decide alike, step by step, under every policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Any

import pytest

pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import first_come, in_engine
from tests.engine.running.fake import Clock, FakeModel, reply_alone

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Dynamic, Policy, Static
from servewise.engine.running.engine import Engine
from servewise.engine.running.hashes import block_hashes
from servewise.engine.running.replay import replay
from servewise.engine.sampling_settings import SamplingSettings
from servewise.records.columns import RequestColumns, StepColumns
from servewise.simulate.arrivals import Arrivals, ClosedArrivals, OpenArrivals
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.workload.request import Request

BLOCK = 4
TIMES = ["scheduled_s", "admitted_s", "first_token_s", "end_s"]
REQUESTS = ["id", *TIMES, "prompt_tokens", "cached_tokens", "output_tokens", "preemptions", "status"]
BATCH = ["decode_sequences", "prefill_tokens", "running", "waiting", "kv_tokens", "active"]
STEPS = ["start_s", "seconds", "steps", *BATCH]
MakeSource = Callable[[list[Request]], Arrivals]


@dataclass
class Watched:
    """A policy whose plans are written down: prompt chunks, who decodes, who was admitted and sent back."""

    policy: Policy
    plans: list[tuple[Any, ...]]

    @property
    def slots(self) -> int:
        return self.policy.slots

    @property
    def prefix_cache(self) -> bool:
        return getattr(self.policy, "prefix_cache", False)

    def batcher(self, pool: BlockPool, window_tokens: int | None = None) -> Batcher:
        batcher = self.policy.batcher(pool, window_tokens)
        plan = batcher.plan

        def watched(now_s: float) -> Batch | None:
            batch = plan(now_s)
            if batch is not None:
                chunks = [(chunk.sequence.serial, *chunk[1:]) for chunk in batch.chunks]
                decoding = sorted(each.serial for each in batcher.unreleased() if each.join)
                moved = [[each.serial for each in who] for who in (batch.admitted, batch.preempted)]
                self.plans.append((now_s, chunks, decoding, *moved, batch.decodes, batch.context_tokens))
            return batch

        batcher.plan = watched  # type: ignore[method-assign]
        return batcher


policies = (
    in_engine
    | st.builds(Static, st.integers(1, 5))
    | st.builds(Dynamic, st.integers(1, 5), st.sampled_from([0.0, 0.5, 2.0, 9.0]))
    | first_come(6, (6, 60))
)


@st.composite
def prompts_at_times(draw: st.DrawFn) -> list[tuple[float, list[int], int]]:
    """(arrival, prompt, reply's tokens), prompts with common beginnings, times in eighths so that sums are exact.

    Some go on where an earlier prompt and its reply end, as a conversation's next turn does.
    """
    at, out = 0.0, []
    said: list[list[int]] = []
    for serial in range(draw(st.integers(1, 18))):
        at += draw(st.sampled_from([0.0, 0.0, 0.125, 1.0, 2.5, 20.0]))
        common = [draw(st.integers(0, 2))] * draw(st.integers(0, 20))
        if draw(st.booleans()) and said:
            common = said[draw(st.integers(0, len(said) - 1))]
        own = [(serial * 7 + place) % 40 for place in range(draw(st.integers(1, 25)))]
        out.append((at, common + own, draw(st.integers(1, 25))))
        said.append(common + own + reply_alone(common + own, out[-1][2]))
        said = [each for each in said if len(each) < 120]
    return out


def rows(columns: RequestColumns | StepColumns, names: list[str]) -> list[tuple[Any, ...]]:
    """Columns as rows; NaN as None, so that equal rows are equal."""
    lists = [[None if isnan(each) else each for each in getattr(columns, name)] for name in names]
    return list(zip(*lists, strict=True))


@settings(max_examples=250, deadline=None)
@given(
    prompts_at_times(),
    policies,
    st.integers(4, 60),
    st.sampled_from([OpenArrivals, partial(ClosedArrivals, concurrency=3), partial(ClosedArrivals, concurrency=4)]),
)
def test_engine_and_simulator_decide_alike(
    prompts: list[tuple[float, list[int], int]], policy: Policy, blocks: int, source: MakeSource
) -> None:
    """Equal plans at equal times, equal request and step records: admission, batches, preemption, hits and ends."""
    requests = [
        Request(serial, at, len(prompt), tokens, block_hashes(prompt + reply_alone(prompt, tokens), BLOCK), 0, True)
        for serial, (at, prompt, tokens) in enumerate(prompts)
    ]
    predicted, carried_out = Watched(policy, []), Watched(policy, [])
    run = simulate(
        source(requests),
        predicted,  # type: ignore[arg-type]
        UnitStep(),
        blocks=blocks,
        block_tokens=BLOCK,
        hash_block_tokens=BLOCK,
        longest_jump=1,
    )
    clock = Clock()
    engine = Engine(FakeModel(clock=clock), carried_out, blocks=blocks, block_tokens=BLOCK, clock=clock)  # type: ignore[arg-type]

    def prompt_of(request: Request) -> tuple[list[int], SamplingSettings]:
        return prompts[request.serial][1], SamplingSettings(max_tokens=request.output_tokens, temperature=0.0)

    replay(engine, source(requests), prompt_of, wait=clock.wait)

    assert carried_out.plans == predicted.plans
    assert rows(engine.steps, STEPS) == rows(run.steps, STEPS)
    refused_later = sorted(rows(engine.requests, REQUESTS))  # an engine hears within a step of whom it will refuse
    assert refused_later == sorted(rows(run.requests, REQUESTS))
