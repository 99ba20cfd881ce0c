"""Speculation changes when tokens come, never how many, and never loses a block."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import first_come

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous
from servewise.batching.policies.sglang import Sglang
from servewise.batching.policies.trtllm import TrtLlm
from servewise.batching.policies.vllm import Vllm
from servewise.batching.sequence import Sequence
from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.draft_length import FixedLength
from servewise.batching.speculative.policy import Groupable, LengthMaker, Speculative
from servewise.records.columns import COMPLETED
from servewise.simulate.run import Run, simulate
from servewise.simulate.speculating.drafters import DraftModel, Ngram
from servewise.simulate.speculating.speculation import Speculation, best, fixed, measured, until_batch
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.ideal import two_term
from servewise.workload.request import Request

TARGET = two_term(weight_bytes=1e10, kv_bytes_per_token=1e5, flops_per_token=1e9, bandwidth=1e12, peak=1e14)
DRAFT = DraftModel(two_term(weight_bytes=1e9, kv_bytes_per_token=1e4, flops_per_token=1e8, bandwidth=1e12, peak=1e14))

chances = st.lists(st.floats(0, 1), min_size=1, max_size=4).map(tuple)
acceptances = st.builds(Acceptance, chances, st.just(1.0) | st.floats(0, 1))
policies = first_come()
presets = st.sampled_from(
    [
        Vllm(8, 64),
        Vllm(4, 256, enable_chunked_prefill=False, async_scheduling=False),
        Vllm(6, 32, scheduling_policy="priority"),
        Vllm(8, 64, preemption_mode="swap", swap_blocks=20),
        Sglang(8, 64),
        Sglang(6, 32, schedule_policy="lpm", enable_mixed_chunk=True),
        TrtLlm(),
    ]
)


@st.composite
def request_lists(draw: st.DrawFn) -> list[Request]:
    """Up to 20 requests in bursts, some with a shared prefix of a 32-token hash block or two."""
    now, out = 0.0, []
    for serial in range(draw(st.integers(1, 20))):
        now += draw(st.floats(0, 0.3))
        prompt = draw(st.integers(1, 100))
        family = 1000 * draw(st.integers(0, 2))
        out.append(Request(serial, now, prompt, draw(st.integers(1, 60)), tuple(range(family, family + prompt // 32))))
    return out


@st.composite
def lengths(draw: st.DrawFn, acceptance: Acceptance) -> LengthMaker:
    """Any way to choose K."""
    k = draw(st.integers(0, 9))
    most = draw(st.integers(1, 6))
    return draw(
        st.sampled_from(
            [
                fixed(k),
                until_batch(k, most),
                best(TARGET, DRAFT, acceptance, max(k, 1)),
                measured(TARGET, DRAFT, max(k, 1)),
            ]
        )
    )


def outputs(run: Run) -> dict[int, int]:
    """Tokens of each request."""
    return dict(zip(run.requests.id, run.requests.output_tokens, strict=True))


@settings(max_examples=50, deadline=None)
@given(st.data(), request_lists(), policies | presets, acceptances, st.none() | st.integers(12, 40))
def test_every_request_gets_its_tokens(
    data: st.DataObject, requests: list[Request], policy: Groupable, acceptance: Acceptance, blocks: int | None
) -> None:
    """However K is chosen and whatever stands, all requests complete with exactly the tokens asked for.

    So by our own policies and by the engines' schedulers.

    Stepping one by one is the same run, since no step is skipped while tokens are drafted.
    """
    length = data.draw(lengths(acceptance))
    speculation = Speculation(TARGET, DRAFT, acceptance, length)
    wrapped = speculation.policy(policy)
    options = {"blocks": blocks, "block_tokens": 16, "hash_block_tokens": 32, "beside": speculation.beside}
    run = simulate(requests, wrapped, TARGET, **options)  # type: ignore[arg-type]
    stepped = simulate(requests, wrapped, TARGET, **options, longest_jump=1)  # type: ignore[arg-type]

    assert set(run.requests.status) == {COMPLETED}
    assert outputs(run) == {each.serial: each.output_tokens for each in requests}
    assert list(run.requests.end_s) == list(stepped.requests.end_s)


@settings(max_examples=100, deadline=None)
@given(request_lists(), policies, st.integers(0, 6))
def test_nothing_accepted_at_no_cost_is_plain_decoding(requests: list[Request], policy: Continuous, k: int) -> None:
    """Steps of 1 s whatever they hold, and budgets that the drafts do not reach: the same records."""
    wide = Continuous(policy.max_sequences, 100_000, policy.chunked_prefill, policy.reserve_output)
    wrapped = Speculative(wide, Acceptance((0.0,)), lambda: FixedLength(k))
    run = simulate(requests, wrapped, UnitStep(), blocks=20 * 11)
    plain = simulate(requests, wide, UnitStep(), blocks=20 * 11)

    assert list(run.requests.id) == list(plain.requests.id)
    assert list(run.requests.end_s) == pytest.approx(list(plain.requests.end_s), rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(request_lists(), acceptances, st.integers(1, 6))
def test_what_stands_does_not_depend_on_the_load(requests: list[Request], acceptance: Acceptance, k: int) -> None:
    """In a run of one at a time and in one of eight at once, a request takes as many verifications."""

    def verifications(slots: int) -> int:
        speculation = Speculation(TARGET, Ngram(), acceptance, lambda: FixedLength(k))
        policy, tally = speculation.policy(Continuous(slots, 8192)).counted()
        simulate(requests, policy, TARGET)
        return tally.verifications

    assert verifications(1) == verifications(8)


@settings(max_examples=100, deadline=None)
@given(request_lists(), policies, acceptances, st.integers(1, 9), st.booleans(), st.integers(11, 40))
def test_no_block_is_lost(
    requests: list[Request], policy: Continuous, acceptance: Acceptance, k: int, ahead: bool, blocks: int
) -> None:
    """Driven to the end, the pool has all its blocks, free or kept; the context sum is the members' own."""
    pool = BlockPool(blocks, 16, 32 if policy.prefix_cache else None)
    batcher = Speculative(policy, acceptance, lambda: FixedLength(k), looks_ahead=ahead).batcher(pool)
    sequences = [Sequence(each.serial, each.prompt_tokens, each.output_tokens, each.block_hashes) for each in requests]
    for each in sequences:
        assert batcher.add(each, 0.0)
    while (batch := batcher.plan(0.0)) is not None:
        assert pool.free >= 0
        batcher.commit(batch, 1)
        assert batcher.group.context_tokens == sum(each.computed_tokens for each in sequences if each.join)

    assert pool.available == blocks
    assert all(each.generated == each.output_tokens for each in sequences)
