"""Block addresses are conserved and never in two hands, through cancellations at any time."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import first_come, in_engine
from tests.engine.running.fake import FakeModel, config, reply_alone

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.engine.running.engine import Engine
from servewise.engine.running.generation import Generation
from servewise.engine.sampling_settings import SamplingSettings
from servewise.errors import InputError
from servewise.records.columns import CANCELLED

BLOCK = 4

policies = (
    in_engine
    | st.builds(Static, st.integers(1, 5))
    | st.builds(Dynamic, st.integers(1, 5), st.just(0.0))
    | first_come(6, (6, 40))
)


def check_addresses(engine: Engine, handles: list[Generation]) -> None:
    """Every number once: free, in tables, or cached; two tables meet only in blocks that both have under one hash."""
    pool = engine.pool
    free, in_tables, cached = pool.counts()
    assert free + in_tables + cached == pool.blocks
    assert free >= pool.free
    assert free + cached == pool.free + pool.kept_blocks, "the pool counts other blocks than there are addresses"
    owners: dict[int, tuple[int, int]] = {}
    for each in handles:
        if each.serial not in pool.tables:
            continue
        for place, address in enumerate(pool.tables[each.serial]):
            shared = place < each.shared
            key = (place, each.block_hashes[place]) if shared else (-1, each.serial)
            assert owners.setdefault(address, key) == key, "one block in two tables"


@settings(max_examples=100, deadline=None)
@given(policies, st.integers(12, 30), st.randoms(use_true_random=False))
def test_every_block_is_in_one_place(policy: Policy, blocks: int, rng: random.Random) -> None:
    """After every step and every cancellation: free + in tables + cached == total, nothing shared but by hash."""
    engine = Engine(FakeModel(config(end=(3,))), policy, blocks=blocks, block_tokens=BLOCK)
    engine.close()
    handles: list[Generation] = []
    for _ in range(60):
        if rng.random() < 0.4 and len(handles) < 25:
            prompt = [rng.randrange(2)] * rng.randrange(12) + [rng.randrange(40) for _ in range(rng.randrange(1, 9))]
            if handles and rng.random() < 0.4:  # the next turn of a conversation, or of one that still goes on
                prompt = rng.choice(handles).tokens[:30] + prompt[-4:]
            count = rng.randrange(1, 25)
            with suppress(InputError):  # longer than a step, or than a slot, of that policy
                handles.append(engine.submit(prompt, SamplingSettings(max_tokens=count, temperature=0.0)))
        if handles and rng.random() < 0.2:
            engine.cancel(rng.choice(handles).serial)
            check_addresses(engine, handles)
        engine.step()
        check_addresses(engine, handles)
    engine.run_until_idle()
    engine.step()  # who ended last is let go with the next decision where it is made ahead

    assert engine.pool.counts()[1] == engine.running == 0
    assert engine.pool.free + engine.pool.kept_blocks == blocks
    for each in handles:
        whole = reply_alone(each.tokens[: each.prompt_tokens], each.output_tokens, end=(3,))
        assert each.output == (whole[: len(each.output)] if each.status == CANCELLED else whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [Continuous(32, 64, prefix_cache=True), Continuous(32, 64), Dynamic(16, 0.0)], ids=repr
)
def test_ten_thousand_requests_leak_nothing(policy: Policy) -> None:
    """10,000 requests, a quarter cancelled at a random time: no block, table, row or handle is left in the engine."""
    rng = random.Random(3)
    engine = Engine(FakeModel(config(vocabulary=8)), policy, blocks=150, block_tokens=BLOCK)
    engine.close()
    sent, alive = 0, []
    while sent < 10_000 or not engine.idle:
        while sent < 10_000 and engine.waiting < 40:
            prompt = [rng.randrange(3)] * rng.randrange(12) + [rng.randrange(8) for _ in range(rng.randrange(1, 9))]
            settings_ = SamplingSettings(max_tokens=rng.randrange(1, 12), temperature=0.0)
            alive.append(engine.submit(prompt, settings_).serial)
            sent += 1
        while alive and rng.random() < 0.6:
            engine.cancel(alive.pop(rng.randrange(len(alive))))
        if len(alive) > 100:
            alive = alive[-80:]
        engine.step()
        if len(engine.steps) % 50 == 0:
            check_addresses(engine, [])

    assert len(engine.requests) == 10_000
    assert sum(status == CANCELLED for status in engine.requests.status) > 1_000
    assert engine.pool.tables == {}
    assert engine.running == engine.waiting == 0
    assert engine.pool.free + engine.pool.kept_blocks == 150
