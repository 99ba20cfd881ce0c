"""Steps put together again from records: exactly the shapes that the simulator timed."""

from __future__ import annotations

import pytest
from tests.calibrate.served import WHERE, closed_run, requests_of

from servewise.batching.policies import Continuous, Policy, Static
from servewise.calibrate.observed_steps import ObservedStep, observed_steps, thinned
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.run import Run, simulate
from servewise.steptime.server_coefficients import ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline
from servewise.steptime.shape import StepShape, decode_shape, prefill_shape

CHUNKED = Continuous(max_sequences=8, max_batched_tokens=100)
WHOLE = Continuous(max_sequences=8, max_batched_tokens=1024, chunked_prefill=False)


def served(policy: Policy, *, blocks: int | None = None) -> tuple[Run, ServerRoofline]:
    """A run of varied requests under that policy, and the clock that timed it."""
    clock = ServerRoofline(WHERE, ServerCoefficients(step_s=0.001, flop_efficiency=0.3, attention_efficiency=0.05))
    source = ClosedArrivals(iter(requests_of(60, 3)), 12)
    return simulate(source, policy, clock, blocks=blocks, block_tokens=16), clock


@pytest.mark.parametrize("policy", [CHUNKED, WHOLE, Static(4)], ids=["chunked", "whole", "static"])
def test_shapes_give_the_times_back(policy: Policy) -> None:
    """The clock that made the records times every step put together from them as it did the first time."""
    run, clock = served(policy)
    steps, dropped = observed_steps(run.requests, run.steps)

    assert dropped == 0
    for each in steps:
        # Runs of equal steps are told as their middle one, whose context is rounded down by less than a token.
        assert clock.seconds(each.shape) == pytest.approx(each.seconds, rel=1e-3 if each.count > 1 else 1e-9)


def test_preempted_steps_are_left_out_and_counted() -> None:
    """With too few blocks prompts are computed twice: what cannot be put together is dropped, the rest is right."""
    run, clock = served(CHUNKED, blocks=60)
    assert sum(run.requests.preemptions) > 0
    steps, dropped = observed_steps(run.requests, run.steps)
    plain = [each for each in steps if not each.shape.prefill_tokens]

    assert 0 < dropped < len(run.steps)
    assert all(clock.seconds(each.shape) == pytest.approx(each.seconds, rel=1e-3) for each in plain)


def test_thinning_keeps_the_rare_prompts() -> None:
    """Of many decode steps and few prompts, all prompts stay."""
    decode = [ObservedStep(decode_shape(1, 10), 0.1, 1, float(each)) for each in range(1000)]
    prompts = [ObservedStep(prefill_shape(1, 10), 0.1, 1, float(each)) for each in range(0, 1000, 20)]
    kept = thinned(sorted(decode + prompts, key=lambda each: each.start_s), 200)

    assert len(kept) == 200
    assert sum(each.shape.prefill_tokens > 0 for each in kept) == 50
    assert [each.start_s for each in kept] == sorted(each.start_s for each in kept)


def test_runs_without_steps_have_none() -> None:
    """Empty records give no steps."""
    run = closed_run(1, 1, 1)
    run.requests.admitted_s[0] = float("nan")
    steps, dropped = observed_steps(run.requests, run.steps)

    assert all(each.shape.prefill_tokens == 0 for each in steps)
    assert dropped == 1
    assert StepShape() not in {each.shape for each in steps}
