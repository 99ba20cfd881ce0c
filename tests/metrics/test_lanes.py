"""A server with several batches in flight: gaps between tokens run within a lane, slots are shared by the lanes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.simulate.pipelined.made import Straight, hop, run_of

from servewise.batching.policies import Continuous, Policy, Sglang, Vllm
from servewise.metrics.latency import floats, ints, itl_of_steps
from servewise.metrics.summary import utilisation
from servewise.records.columns import StepColumns
from servewise.simulate.run import Run
from servewise.steptime.pipeline import Pipeline
from servewise.workload.request import Request


def pipelined(requests: list[Request], policy: Policy, stages: int) -> Run:
    """A run on equal stages whose steps grow with their tokens."""
    return run_of(requests, policy, Pipeline(tuple(Straight(0.01, 1e-4) for _ in range(stages)), hop(1e-3)))[0]


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("policy", [Vllm(16, 64), Vllm(64, 2048), Sglang(16, 64), Sglang(64, 2048), Continuous(8, 100)])
def test_gaps_add_up_to_the_time_between_first_and_last_tokens(policy: Policy, stages: int) -> None:
    """With nobody preempted each answer's gaps lie between its first token and its last: their sums are the same, 1%.

    Other lanes' prompts lie between a lane's steps in the record, and hold up nobody there. What is left over: steps do
    not say whose first token came in them, nor that a lane waited for room behind others' prompts.
    """
    draw = Random(stages)
    at = np.cumsum([draw.choice([0.0, 0.05, 0.3]) for _ in range(400)])
    requests = [Request(each, float(at[each]), draw.randint(1, 300), draw.randint(1, 60)) for each in range(400)]
    run = pipelined(requests, policy, stages)
    assert not sum(run.requests.preemptions)
    decoding_s = float((floats(run.requests.end_s) - floats(run.requests.first_token_s)).sum())
    gaps, tokens = itl_of_steps(run.steps)

    assert float(tokens.sum()) == pytest.approx(float((ints(run.requests.output_tokens) - 1).sum()))
    assert float(gaps @ tokens) == pytest.approx(decoding_s, rel=0.01)


def test_another_lanes_prompt_holds_nobody_up() -> None:
    """Lane 0 decodes one sequence from 0 to 1 s and from 1 to 2 s; lane 1's prompt runs from 0.5 to 1.5 s."""
    steps = StepColumns()
    for lane, start_s, decodes in ((0, 0.0, 1), (1, 0.5, 0), (0, 1.0, 1), (1, 1.5, 1)):
        for name, value in (("steps", 1), ("decode_sequences", decodes), ("active", 1), ("replica", 0), ("lane", lane)):
            getattr(steps, name).append(value)
        steps.start_s.append(start_s)
        steps.seconds.append(1.0)
    gaps, tokens = itl_of_steps(steps)

    assert gaps[tokens > 0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("stages", "users"), [(1, 8), (2, 8), (4, 8), (2, 4)])
def test_a_pipeline_whose_lanes_are_full_is_in_full_use(stages: int, users: int) -> None:
    """Equal requests that decode side by side, in lanes of two or more: of 8 slots as many make a token as run."""
    requests = [Request(serial, 0.0, 1, 2000) for serial in range(users)]
    run = pipelined(requests, Continuous(max_sequences=8, max_batched_tokens=256), stages)

    assert utilisation(run.steps, run.slots)[0] == pytest.approx(users / 8, rel=0.01)
