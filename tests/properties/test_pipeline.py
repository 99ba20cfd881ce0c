"""A pipeline of one stage is a plain server; jumps through several stages give what stepping gives; nothing is lost."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import continuous, presets
from tests.properties.test_step_skipping import (
    LinesEstimator,
    close,
    estimators,
    policies,
    request_lists,
)
from tests.simulate.pipelined.made import hop, run_of

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Policy
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.run import Run, simulate
from servewise.steptime.pipeline import Pipeline
from servewise.workload.request import Request

pools = st.none() | st.integers(14, 60)
stages = st.lists(estimators, min_size=2, max_size=4).map(
    lambda found: tuple(
        LinesEstimator(each.lines, each.per_token_s, found[0].window_tokens)  # one model has one window
        for each in found
    )
)
pipelines = st.builds(Pipeline, stages, st.none() | st.builds(hop, st.floats(0, 0.01), st.floats(1, 1e5)))


def assert_same_requests(one: Run, other: Run) -> None:
    """Equal requests, whatever the order of those that end at one time."""
    left, right = (sorted(zip(*(getattr(run.requests, name) for name in NAMES), strict=True)) for run in (one, other))
    for these, those in zip(left, right, strict=True):
        assert all(close(a, b) for a, b in zip(these, those, strict=True)), (these, those)


NAMES = (
    "id",
    "scheduled_s",
    "admitted_s",
    "first_token_s",
    "end_s",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "preemptions",
    "status",
    "prefill_s",
    "preempted_s",
)


@settings(max_examples=120, deadline=None)
@given(request_lists(), policies, estimators, pools, st.none() | st.just(1))
def test_one_stage_is_a_replica(
    requests: list[Request], policy: Policy, estimator: LinesEstimator, blocks: int | None, jump: int | None
) -> None:
    """The records of a pipeline of one stage are a plain server's to the last bit, save rounded durations.

    Where the next step is decided ahead the server's jumps go on one step past an arrival, so their rows are fewer.
    """
    options = {"blocks": blocks, "block_tokens": 16, "hash_block_tokens": 32, "longest_jump": jump}
    plain = simulate(requests, policy, estimator, **options)  # type: ignore[arg-type]
    through, _ = run_of(requests, policy, Pipeline((estimator,)), **options)  # type: ignore[arg-type]

    if getattr(policy.batcher(BlockPool(None, 16)), "decides_ahead", False):
        assert sum(plain.steps.steps) == sum(through.steps.steps)
        assert_same_requests(plain, through)
        return
    assert all(close(a, b) for a, b in zip(plain.steps.seconds, through.steps.seconds, strict=True))
    for name in ("id", "admitted_s", "first_token_s", "end_s", "prefill_s", "preempted_s"):
        assert repr(getattr(plain.requests, name)) == repr(getattr(through.requests, name))
    for name in ("start_s", "steps", "decode_sequences", "prefill_tokens", "running", "waiting", "kv_tokens", "active"):
        assert list(getattr(plain.steps, name)) == list(getattr(through.steps, name))


@settings(max_examples=150, deadline=None)
@given(request_lists(), policies, pipelines, pools)
def test_jumps_equal_single_steps(
    requests: list[Request], policy: Policy, pipeline: Pipeline, blocks: int | None
) -> None:
    """A lane alone in the pipeline may jump: the times are those of stepping one by one."""
    options = {"blocks": blocks, "block_tokens": 16, "hash_block_tokens": 32}
    jumped, one = run_of(requests, policy, pipeline, **options)  # type: ignore[arg-type]
    stepped, other = run_of(requests, policy, pipeline, **options, longest_jump=1)  # type: ignore[arg-type]

    assert_same_requests(jumped, stepped)
    assert all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(one.busy_s, other.busy_s, strict=True))


@settings(max_examples=120, deadline=None)
@given(request_lists(), policies, pipelines, pools)
def test_interruptions_change_nothing(
    requests: list[Request], policy: Policy, pipeline: Pipeline, blocks: int | None
) -> None:
    """Whether the next arrival is known ahead, or cuts short what had begun, is all the same."""
    options = {"blocks": blocks, "block_tokens": 16, "hash_block_tokens": 32}
    known, _ = run_of(requests, policy, pipeline, **options)  # type: ignore[arg-type]
    cut, _ = run_of(requests, policy, pipeline, **options, interrupted=True)  # type: ignore[arg-type]

    assert_same_requests(known, cut)


@settings(max_examples=120, deadline=None)
@given(request_lists(), continuous | presets, pipelines, st.integers(14, 24), st.integers(1, 6))
def test_nothing_is_lost(
    requests: list[Request], policy: Policy, pipeline: Pipeline, blocks: int, clients: int
) -> None:
    """However short the pool, each request ends or can never fit, all blocks come back, and no stage works twice."""
    run, replica = run_of(ClosedArrivals(requests, clients), policy, pipeline, blocks=blocks, hash_block_tokens=32)

    assert sorted(run.requests.id) == [each.serial for each in requests]
    assert set(run.requests.status) <= {0, 1}
    assert replica.batcher.pool.available == blocks  # type: ignore[attr-defined]
    assert max(replica.busy_s) <= replica.now_s * (1 + 1e-9)
