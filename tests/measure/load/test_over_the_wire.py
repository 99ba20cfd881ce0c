"""The load against a stand-in server, over real sockets: its own counts of tokens, cache hits and attempts."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("httptools")

from servewise.measure.addressing import target_of
from servewise.measure.crew.many import drive_many
from servewise.measure.drive.drive import drive
from servewise.measure.drive.one import send_one
from servewise.measure.drive.terms import Terms
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.mismatch import prompt_mismatch
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.retry import RetryRule, last_attempts
from servewise.measure.load.wanted import Conversations, LoadWanted, schedule_for
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import running_mock
from servewise.measure.outcome import Outcome
from servewise.measure.sending import Sending
from servewise.measure.target import Target
from servewise.workload.lengths import Fixed, Uniform
from servewise.workload.prefix import SharedPrefix

FORM = Form(model="mock", api="chat")
QUICK: dict[str, Any] = {"first_s": (0.0, 0.0), "gap_s": 0.0}


def sent(
    wanted: LoadWanted, target: Target, prompts: Prompts, *, workers: int = 1, **how: Any
) -> tuple[list[Exchange], Sending]:
    """Everything that the load sends, and how it was sent."""
    done: list[Exchange] = []
    schedule = schedule_for(wanted, prompts, FORM, seed=1, **how)
    common: dict[str, Any] = {"on_end": done.append, "terms": Terms(keep_text=wanted.needs_text)}
    if workers > 1:
        return done, drive_many(schedule, target, workers=workers, start_s=time.monotonic() + 1.0, **common)
    return done, drive(schedule, target, start_s=time.monotonic(), **common)


def test_prompts_have_the_length_that_the_server_counts() -> None:
    """With 25 tokens of template and 1.3 tokens a word, no prompt is more than two tokens from what was asked."""
    with running_mock(MockPlan(**QUICK, template_tokens=25, tokens_per_word=1.3)) as mock:
        target = target_of(mock.url, model="mock")
        prompts = Prompts(seed=1).calibrated(lambda ask: send_one(ask, target), FORM)
        wanted = LoadWanted(input_tokens=Uniform(40, 900), output_tokens=Fixed(1), requests=30)
        done, _ = sent(wanted, target, prompts, concurrency=4)
    found = prompt_mismatch(done)
    assert found is not None
    assert found.requests == 30
    assert abs(found.worst_tokens) <= 2


def test_only_what_is_to_be_shared_is_cached() -> None:
    """By a server that caches blocks of 16 words: nothing of plain prompts, 64 of 64 shared words but the first time.

    Two groups of a prefix: all but the first request of each find the whole prefix, and nothing behind it.
    """
    plain = LoadWanted(input_tokens=Fixed(100), output_tokens=Fixed(1), requests=25)
    shared = LoadWanted(input_tokens=Fixed(36), output_tokens=Fixed(1), requests=25, prefix=SharedPrefix(2, 64))
    with running_mock(MockPlan(**QUICK, prefix_block=16)) as mock:
        target = target_of(mock.url, model="mock")
        first, _ = sent(plain, target, Prompts(seed=1), concurrency=1)
        second, _ = sent(shared, target, Prompts(seed=1, salt=1), concurrency=1)
        again, _ = sent(shared, target, Prompts(seed=1, salt=2), concurrency=1)
    assert {each.cached_tokens or 0 for each in first} == {0}
    for run in (second, again):
        assert Counter(each.cached_tokens or 0 for each in run) == {64: 23, 0: 2}


def test_a_conversation_finds_its_history_in_the_cache() -> None:
    """Each later turn has more words than the one before, of which the server knows the earlier turn's blocks."""
    wanted = LoadWanted(
        input_tokens=Fixed(64),
        output_tokens=Fixed(16),
        requests=2,
        conversations=Conversations(Fixed(3), Fixed(32)),
    )
    with running_mock(MockPlan(**QUICK, prefix_block=16)) as mock:
        done, _ = sent(wanted, target_of(mock.url, model="mock"), Prompts(seed=1), concurrency=2)
    assert Counter(each.ask.turn for each in done) == {0: 2, 1: 2, 2: 2}
    for session in (0, 1):
        turns = sorted((each for each in done if each.ask.serial % 2 == session), key=lambda each: each.ask.turn)
        prompts = [each.prompt_tokens or 0 for each in turns]
        assert prompts[1] >= prompts[0] + 32
        assert prompts[2] >= prompts[1] + 32
        assert all((later.cached_tokens or 0) >= 64 for later in turns[1:])


def test_a_429_is_honoured_and_the_wait_is_not_the_clients_lateness() -> None:
    """Refused once with Retry-After 1: two attempts, the second over a second after the schedule, and none late."""
    wanted = LoadWanted(input_tokens=Fixed(8), output_tokens=Fixed(1), requests=3, retries=RetryRule())
    with running_mock(MockPlan(**QUICK, fault=Fault.RATE_LIMITED_ONCE, retry_after="1")) as mock:
        done, sending = sent(wanted, target_of(mock.url, model="mock"), Prompts(seed=1), concurrency=3)
    assert Counter((each.outcome, each.retries) for each in done) == {
        (Outcome.RATE_LIMITED, 0): 3,
        (Outcome.COMPLETED, 1): 3,
    }
    assert all(each.sent_s - each.scheduled_s >= 1 for each in last_attempts(done))
    assert max(sending.lateness_s) < 0.9


def test_several_processes_send_what_one_would() -> None:
    """Two workers of an open loop and one: the same serials, each completed once."""
    wanted = LoadWanted(input_tokens=Uniform(4, 30), output_tokens=Fixed(2), requests=40)
    with running_mock(MockPlan(**QUICK)) as mock:
        target = target_of(mock.url, model="mock")
        done, sending = sent(wanted, target, Prompts(seed=1), workers=2, rate_per_s=100.0)
    assert sending.workers == 2
    assert sorted(each.ask.serial for each in done) == list(range(40))
    assert {each.outcome for each in done} == {Outcome.COMPLETED}
