"""Conversations in the simulator: turns that wait for answers, what the cache had of them, and what that is worth."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.batching.policies import Continuous
from servewise.records.columns import COMPLETED
from servewise.simulate.run import Run, simulate
from servewise.simulate.settled import since
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.estimator import Line
from servewise.steptime.shape import StepShape
from servewise.techniques.reuse import count_reuse
from servewise.workload.arrivals import Constant, Poisson
from servewise.workload.conversations import Conversations
from servewise.workload.lengths import Fixed, Uniform
from servewise.workload.prefix import SharedPrefix
from servewise.workload.request import Request
from servewise.workload.thinking import Thinking

CACHED = Continuous(64, 4096, prefix_cache=True)
PLAIN = Continuous(64, 4096)


def talks(**more: object) -> Conversations:
    """Three turns of 40 said and 10 answered, pauses of 7 s, a new conversation every 1,000 s."""
    given: dict[str, object] = {"turns": Fixed(3), "user_tokens": Fixed(40), "output_tokens": Fixed(10), "count": 9}
    given |= {"arrivals": Constant(1e-3), "thinking": Thinking(7), "settle_s": 0.0}
    return Conversations(**{**given, **more})  # type: ignore[arg-type]


def run(workload: Conversations, *, blocks: int | None = None) -> Run:
    """The workload in unit steps, with a prefix cache."""
    return simulate(workload.session(0), CACHED, UnitStep(), blocks=blocks, hash_block_tokens=16)


def rows(found: Run, *names: str) -> list[tuple[float, ...]]:
    """These columns of the records, by serial."""
    columns = (getattr(found.requests, name) for name in ("id", *names))
    return [row[1:] for row in sorted(zip(*columns, strict=True))]


def test_a_turn_comes_when_its_user_has_thought() -> None:
    """10 steps of 1 s an answer and 7 s of thought: turns at 1000, 1017 and 1034 s."""
    assert [row[0] for row in rows(run(talks()), "scheduled_s")[:3]] == [1000, 1017, 1034]


def test_users_go_on_with_another_conversation() -> None:
    """One user: after 7 s the first turn; six turns 17 s apart, across conversations too."""
    found = run(talks(arrivals=None, users=1, count=6))
    assert [row[0] for row in rows(found, "scheduled_s")] == [7, 24, 41, 58, 75, 92]


def test_a_run_that_has_settled_counts_the_rest() -> None:
    """With 1,500 s to settle, five turns from then on are kept, and only steps that began then."""
    source = talks(count=5, settle_s=1500.0).session(0)
    whole = simulate(source, CACHED, UnitStep(), hash_block_tokens=16)
    kept = since(whole, source.settle_s)
    assert (len(whole.requests), len(kept.requests)) == (8, 5)
    assert min(kept.requests.scheduled_s) >= 1500
    assert min(kept.steps.start_s) >= 1500
    assert sum(kept.steps.steps) == 50
    assert len(kept.steps.steps) == len(kept.steps.active) == len(kept.steps.replica)


def test_each_turn_finds_the_whole_blocks_of_the_one_before() -> None:
    """After turns of 50, 100 and 150 tokens 49, 99 and 149 are in the cache: 48 and 96 whole ones are found."""
    assert rows(run(talks()), "prompt_tokens", "cached_tokens") == [(40, 0), (90, 48), (140, 96)] * 3


def test_alone_with_room_the_records_are_the_closed_form() -> None:
    """One conversation after another in an endless pool: what ``count_reuse`` finds.

    No turn of 50, 100, 150 tokens, nor 100 more, ends where a block does: the token never fed back completes none.
    """
    workload = talks(count=300, thinking=Thinking(0.5), prefix=SharedPrefix(3, 100, 0.7))
    found = run(workload)
    expected = count_reuse(workload.requests(0), 16)
    assert sum(found.requests.cached_tokens) == expected.reusable_tokens
    assert sum(found.requests.prompt_tokens) == expected.prompt_tokens


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.integers(30, 120), st.floats(0.01, 2), st.floats(0, 30))
def test_jumps_change_nothing(seed: int, closed: bool, blocks: int, rate: float, think: float) -> None:
    """Conversations run in jumps and step by step give equal records, hits and preemptions included."""
    lengths = {"turns": Uniform(1, 5), "user_tokens": Uniform(1, 60), "output_tokens": Uniform(1, 40)}
    opened = {"arrivals": None, "users": 4} if closed else {"arrivals": Poisson(rate)}
    workload = talks(**lengths, **opened, thinking=Thinking(think, 1), count=40, max_context_tokens=16 * blocks)
    runs = [
        simulate(workload.session(seed), CACHED, UnitStep(), blocks=blocks, hash_block_tokens=16, longest_jump=jump)
        for jump in (None, 1)
    ]
    names = ("scheduled_s", "admitted_s", "first_token_s", "end_s", "cached_tokens", "preemptions", "status")
    jumped, stepped = (rows(each, *names) for each in runs)
    assert len(jumped) == 40
    assert jumped == [pytest.approx(row, abs=1e-9) for row in stepped]


class PromptStep:
    """A step takes 1 s a thousand prompt tokens and 1 ms beside: prefill in its plainest form."""

    name = "prompt tokens"
    window_tokens = None
    caveats = ()

    def seconds(self, shape: StepShape) -> float:
        """1 ms, and 1 ms each prompt token."""
        return 1e-3 * (1 + shape.prefill_tokens)

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """1 ms."""
        return (Line(1e-3, 0.0, 0.0),)


def test_the_first_token_comes_sooner_by_the_tokens_not_computed() -> None:
    """At 1 ms a prompt token: 141 ms for 140 tokens without a cache, 45 ms for the 44 that are new with one."""
    first = []
    for policy in (PLAIN, CACHED):
        found = simulate(talks().session(0), policy, PromptStep(), hash_block_tokens=16)  # type: ignore[arg-type]
        sent, token = rows(found, "scheduled_s", "first_token_s")[2]
        first.append(token - sent)
    assert first == pytest.approx([0.141, 0.045])


def test_a_shared_prefix_makes_room_for_more_sequences() -> None:
    """320 blocks, 64 of them a prefix that all share, 16 more each at admission: 4 at once without sharing, 16 with.

    floor(320 / 80) and floor((320 - 64) / 16).
    """
    most = []
    for policy in (PLAIN, CACHED):
        shared = tuple(range(64))
        requests = [Request(0, 0.0, 1025, 1, shared)] + [Request(n, 10.0, 1280, 1, shared) for n in range(1, 41)]
        found = simulate(requests, policy, UnitStep(), blocks=320, hash_block_tokens=16)
        assert set(found.requests.status) == {COMPLETED}
        most.append(max(found.steps.running))
    assert most == [4, 16]


def test_eviction_takes_the_history_of_those_who_think_longest() -> None:
    """Two users in a pool for one conversation and a half: each turn evicts the other's, nothing is found; alone, all.

    A history of 150 tokens is 10 blocks; a pool of 12 holds one. Turn about, every 17 s.
    """
    hits = {
        users: sum(run(talks(arrivals=None, users=users, count=12), blocks=12).requests.cached_tokens)
        for users in (1, 2)
    }
    assert hits[1] == 4 * (48 + 96)
    assert hits[2] < hits[1]
