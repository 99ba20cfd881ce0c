"""Rows with and without a draft, when a lookup finds something only now and then."""

from __future__ import annotations

import math

import pytest

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous
from servewise.batching.sequence import Sequence
from servewise.batching.speculative.acceptance import Acceptance, Draws
from servewise.batching.speculative.draft_length import FixedLength
from servewise.batching.speculative.policy import Speculative
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.techniques.speculation import tokens_per_verification
from servewise.workload.request import Request

HIT, ACCEPTANCE, K = 0.4, 0.8, 5


def test_tokens_a_row_and_a_verification() -> None:
    """Of rows 40% have a draft, each of which gives (1 - a^(K+1)) / (1 - a) tokens; within four standard errors."""
    policy, tally = Speculative(
        Continuous(8), Acceptance((ACCEPTANCE,), hit_rate=HIT), lambda: FixedLength(K)
    ).counted()
    requests = [Request(serial, 0.0, 10, 4001) for serial in range(8)]
    run = simulate(requests, policy, UnitStep())
    rows = tally.verifications + tally.plain
    expected = tokens_per_verification(ACCEPTANCE, K)

    assert tally.verifications / rows == pytest.approx(HIT, abs=4 * math.sqrt(HIT * (1 - HIT) / rows))
    assert tally.tokens_per_verification == pytest.approx(expected, abs=4 * K / math.sqrt(tally.verifications))
    assert tally.gained + tally.plain == 8 * 4000
    assert set(run.requests.output_tokens) == {4001}


def test_a_draft_that_stands_was_found() -> None:
    """Wherever a token is kept the lookup had hit."""
    draws = Draws(Acceptance((0.5,), hit_rate=0.3))
    stream = draws.stream(0)
    places = range(2000)

    assert all(draws.hits(stream, place) for place in places if draws.accepted(stream, place, 3))
    assert 0.25 < sum(draws.hits(stream, place) for place in places) / 2000 < 0.35


def test_steps_tell_who_drafts() -> None:
    """Of eight rows those with a match read their K tokens more; without any it is a plain step."""
    policy = Speculative(Continuous(8), Acceptance((0.0,), hit_rate=0.2), lambda: FixedLength(3))
    batcher = policy.batcher(BlockPool(None, 16))
    for serial in range(8):
        batcher.add(Sequence(serial, 100, 30), 0.0)
    decoding = []
    while (batch := batcher.plan(0.0)) is not None:
        decoding += [] if batch.chunks else [batch]
        batcher.commit(batch, 1)

    assert {each.drafted for each in decoding} == {0, 3}
    for step, each in enumerate(decoding, start=1):
        assert each.context_tokens == 8 * (100 + step) + 3 * each.drafting
        assert (each.drafted == 0) == (each.drafting == 0)


def test_the_window_holds_no_drafts_that_were_not_found() -> None:
    """Within a window a row without a match reads its one new token alone: 101 of 104, where 3 drafts fill it."""
    policy = Speculative(Continuous(8), Acceptance((0.0,), hit_rate=0.2), lambda: FixedLength(3))
    batcher = policy.batcher(BlockPool(None, 16), 104)
    for serial in range(8):
        batcher.add(Sequence(serial, 100, 30), 0.0)
    step, seen = 0, set()
    while (batch := batcher.plan(0.0)) is not None:
        if not batch.chunks:
            step += 1
            seen.add(batch.drafting > 0)
            new = batch.drafting * min(100 + step + 3, 104) + (8 - batch.drafting) * min(100 + step, 104)
            assert batch.windowed_tokens == new
        batcher.commit(batch, 1)

    assert seen == {False, True}


def test_a_drafter_that_always_has_a_draft_is_no_lookup() -> None:
    """Every row verifies: none is told apart."""
    batcher = Speculative(Continuous(8), Acceptance((0.5,)), lambda: FixedLength(3)).batcher(BlockPool(None, 16))
    batcher.add(Sequence(0, 100, 30), 0.0)
    batcher.commit(batcher.plan(0.0), 1)  # type: ignore[arg-type]
    batch = batcher.plan(0.0)

    assert batch is not None
    assert (batch.drafted, batch.drafting) == (3, 0)
