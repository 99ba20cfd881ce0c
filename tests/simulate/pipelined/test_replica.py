"""A server of several pipeline stages against what can be worked out by hand."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from tests.simulate.pipelined.made import Straight, hop, run_of

from servewise.batching.policies import Continuous, Sglang, TrtLlm
from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.draft_length import FixedLength
from servewise.batching.speculative.policy import Speculative
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.timed import TimedSequence
from servewise.steptime.pipeline import Pipeline
from servewise.workload.request import Request

STAGE_S = 0.01


def equal_stages(count: int) -> Pipeline:
    """Stages of 10 ms each, whatever the batch."""
    return Pipeline(tuple(Straight(STAGE_S) for _ in range(count)))


@pytest.mark.parametrize(("stages", "batches"), [(2, 1), (4, 1), (4, 4), (4, 7), (8, 32)])
def test_the_bubble_is_gpipes(stages: int, batches: int) -> None:
    """m equal batches leave each of p stages idle for (p - 1) / (m + p - 1) of the time (GPipe, section 2.3)."""
    requests = [Request(serial, 0.0, 100, 1) for serial in range(batches)]
    run, replica = run_of(requests, Continuous(max_batched_tokens=100, max_sequences=64), equal_stages(stages))
    whole_s = max(run.requests.end_s)

    assert whole_s == pytest.approx((batches + stages - 1) * STAGE_S)
    for busy_s in replica.busy_s:
        assert 1 - busy_s / whole_s == pytest.approx((stages - 1) / (batches + stages - 1))


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
def test_one_sequence_goes_through_all_stages_for_each_token(stages: int) -> None:
    """A token of a sequence alone takes the stages' times and the hops between them, and no stage helps another."""
    hop_s = 0.002
    pipeline = Pipeline(tuple(Straight(STAGE_S) for _ in range(stages)), hop(hop_s))
    run, _ = run_of([Request(0, 0.0, 100, 51)], Continuous(), pipeline)
    tpot_s = (run.requests.end_s[0] - run.requests.first_token_s[0]) / 50

    assert tpot_s == pytest.approx(stages * STAGE_S + (stages - 1) * hop_s)
    assert run.requests.first_token_s[0] == pytest.approx(tpot_s)


def test_a_hop_takes_latency_and_bytes() -> None:
    """A prompt's hop carries the bytes of all its tokens, a decode step's those of one."""
    pipeline = Pipeline((Straight(STAGE_S), Straight(STAGE_S)), hop(1e-3, bytes_per_token=8192, bytes_per_s=1e9))
    run, _ = run_of([Request(0, 0.0, 1000, 2)], Continuous(), pipeline)

    assert run.requests.first_token_s[0] == pytest.approx(2 * STAGE_S + 1e-3 + 1000 * 8192 / 1e9)
    assert run.requests.end_s[0] - run.requests.first_token_s[0] == pytest.approx(2 * STAGE_S + 1e-3 + 8192 / 1e9)


@pytest.mark.parametrize("stages", [2, 4])
def test_a_full_pipeline_makes_as_many_tokens_as_stages_would(stages: int) -> None:
    """Saturated, p equal stages make p times the tokens of a sequence's latency: each batch returns every p stages."""
    users = 16 * stages
    requests = [Request(serial, 0.0, 10, 400) for serial in range(2 * users)]
    policy = Continuous(max_sequences=users, max_batched_tokens=8192)
    run, replica = run_of(ClosedArrivals(requests, users), policy, equal_stages(stages))
    whole_s = max(run.requests.end_s)
    tokens_per_s = len(requests) * 400 / whole_s
    one_batch_alone = 16 / (stages * STAGE_S)

    assert tokens_per_s == pytest.approx(
        stages * one_batch_alone, rel=0.02
    )  # the first round and the last have bubbles
    assert min(replica.busy_s) / whole_s > 0.98


def test_the_slowest_stage_sets_the_pace() -> None:
    """With stages of 10 and 30 ms a full pipeline returns a batch every 30 ms."""
    requests = [Request(serial, 0.0, 10, 300) for serial in range(2)]
    policy = Continuous(max_sequences=2, max_batched_tokens=8192)
    run, replica = run_of(requests, policy, Pipeline((Straight(0.01), Straight(0.03))))
    whole_s = max(run.requests.end_s)

    assert whole_s == pytest.approx(600 * 0.03 + 0.01, rel=0.01)
    assert replica.busy_s[0] / whole_s == pytest.approx(1 / 3, rel=0.01)


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_parts_of_one_prompt_follow_each_other(stages: int) -> None:
    """A part of a prompt makes no token: the next one enters behind it, so n parts take n + p - 1 stage times."""
    policy = Continuous(max_sequences=64, max_batched_tokens=100)
    run, _ = run_of([Request(0, 0.0, 1000, 1)], policy, equal_stages(stages))

    assert run.requests.first_token_s[0] == pytest.approx((10 + stages - 1) * STAGE_S)


def test_a_sequence_in_flight_is_not_scheduled_again() -> None:
    """Of two sequences in two lanes each gets a token a round, though a stage is free in between."""
    requests = [Request(serial, 0.0, 10, 11) for serial in range(2)]
    run, _ = run_of(requests, Continuous(max_batched_tokens=256), equal_stages(4))

    for first_s, end_s in zip(run.requests.first_token_s, run.requests.end_s, strict=True):
        assert end_s - first_s == pytest.approx(10 * 4 * STAGE_S)


def test_an_arrival_takes_an_idle_lane_at_once() -> None:
    """While one batch is in the second stage another may enter the first, without waiting for it to return."""
    requests = [Request(0, 0.0, 10, 100), Request(1, 0.015, 10, 1)]
    run, _ = run_of(requests, Continuous(), equal_stages(2))
    served = dict(zip(run.requests.id, run.requests.admitted_s, strict=True))

    assert served[1] == pytest.approx(0.015)


def test_lanes_share_the_pool() -> None:
    """A sequence may hold more than half of the pool; the other lane's then wait, and nobody is turned away."""
    requests = [Request(0, 0.0, 16 * 12, 16 * 6), Request(1, 0.0, 16 * 10, 16 * 2)]
    run, replica = run_of(requests, Continuous(), equal_stages(2), blocks=20)

    assert list(run.requests.status) == [0, 0]
    assert replica.batcher.pool.available == 20  # type: ignore[attr-defined]


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_no_more_run_at_once_than_the_server_has_slots(slots: int) -> None:
    """Prompts of two parts each end in the next lane, whose slots are still the whole server's."""
    requests = [Request(serial, 0.0, 40, 30) for serial in range(12)]
    policy = Sglang(max_running_requests=slots, chunked_prefill_size=32, disable_radix_cache=True)
    run, _ = run_of(requests, policy, equal_stages(2))
    begun, ended = sorted(run.requests.admitted_s), sorted(run.requests.end_s)
    at_once = [bisect_right(begun, when) - bisect_right(ended, when) for when in begun]

    assert list(run.requests.status) == [0] * len(requests)
    assert max(at_once) == slots


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_prompts_that_hold_each_others_blocks_give_way(stages: int) -> None:
    """Prompts in parts that fit the pool alone but not together: the first to come goes on, and nobody is locked out.

    150 tokens are 10 blocks of 15; each is let in beside the first parts of the others, and none could take its last.
    """
    requests = [Request(serial, 0.0, 150, 22) for serial in range(2 * stages)]
    policy = Sglang(max_running_requests=2 * stages, chunked_prefill_size=32, disable_radix_cache=True)
    run, replica = run_of(requests, policy, equal_stages(stages), blocks=15)

    assert list(run.requests.status) == [0] * len(requests)
    assert run.requests.id[0] == 0
    assert replica.batcher.pool.available == 15  # type: ignore[attr-defined]
    for row in range(len(run.requests)):
        assert run.requests.end_s[row] >= run.requests.preempted_s[row] + run.requests.prefill_s[row]


@pytest.mark.parametrize("blocks", [12, 15, 21])
def test_lanes_that_look_drafts_up_give_way_too(blocks: int) -> None:
    """The same where each step asks a lookup for drafts, which finds some for half of the rows."""
    requests = [Request(serial, 0.0, 150, 22) for serial in range(12)]
    policy = Sglang(max_running_requests=12, chunked_prefill_size=32, disable_radix_cache=True)
    drafting = Speculative(policy, Acceptance((0.6,), 0.5), lambda: FixedLength(2))
    run, replica = run_of(requests, drafting, equal_stages(4), blocks=blocks)

    assert list(run.requests.status) == [0] * len(requests)
    assert replica.batcher.pool.available == blocks  # type: ignore[attr-defined]


def test_a_server_that_dies_leaves_the_whole_steps() -> None:
    """Of a jump under way the steps that ended before the failure count, those under way are lost."""
    _, replica = run_of([], Continuous(), equal_stages(2))
    replica.add(TimedSequence(Request(0, 0.0, 10, 100)), 0.0)
    replica.begin()
    replica.finish()
    replica.begin()  # decodes from 0.02 s on, 20 ms a token

    assert replica.halt(0.02 + 5.5 * 0.02)
    replica.finish()
    assert replica.now_s == pytest.approx(0.02 + 5 * 0.02)
    replica.begin()
    assert not replica.halt(replica.now_s + 0.001)
    assert not replica.running


@pytest.mark.parametrize("stages", [2, 3])
def test_tensorrt_llm_s_limit_is_of_each_batch_in_flight(stages: int) -> None:
    """Two sequences a batch are two in every step and two a stage at once; vLLM's and SGLang's limits are of all."""
    requests = [Request(serial, 0.0, 10, 50) for serial in range(6 * stages)]
    policy = TrtLlm(max_batch_size=2, max_num_tokens=100, pipeline_parallel_size=stages)
    run, _ = run_of(requests, policy, equal_stages(stages))
    begun, ended = sorted(run.requests.admitted_s), sorted(run.requests.end_s)
    at_once = max(bisect_right(begun, each) - bisect_right(ended, each) for each in begun)

    assert max(run.steps.active) == 2
    assert at_once == 2 * stages
