"""The closed loop: never more than its users, each after its own answer, and the same requests however it is split."""

from __future__ import annotations

import pickle
from math import nan

import pytest
from tests.measure.load.driving import driven, ended, most_under_way, taking

from servewise.errors import InputError
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.closed import AFTER_FAILURE_S, ClosedSchedule
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.thinking import Thinking
from servewise.measure.load.wanted import LoadWanted, schedule_for
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due
from servewise.workload.lengths import Fixed


def closed(concurrency: int, requests: int | None = 12, think_s: float = 0.0, stagger_s: float = 0.0) -> ClosedSchedule:
    """A closed loop over short prompts."""
    lengths = Fixed(4)
    wanted = LoadWanted(
        input_tokens=lengths,
        output_tokens=lengths,
        requests=requests,
        thinking=Thinking(think_s),
        stagger_s=stagger_s,
    )
    found = schedule_for(wanted, Prompts(seed=1), Form(model="m", api="chat"), seed=1, concurrency=concurrency)
    assert isinstance(found, ClosedSchedule)
    return found


def test_users_send_again_as_soon_as_they_have_their_answer() -> None:
    """Three users and 1 s an answer: requests leave in threes at 0, 1, 2 and 3 s, each scheduled as it leaves."""
    exchanges = driven(closed(3), taking(1.0))
    assert [each.sent_s for each in exchanges] == [float(at // 3) for at in range(12)]
    assert all(each.sent_s == each.scheduled_s for each in exchanges)
    assert [each.ask.serial for each in exchanges] == list(range(12))
    assert most_under_way(exchanges) == 3


def test_users_think_before_they_send_again() -> None:
    """One user, 1 s an answer and 2 s to think: a request every 3 s."""
    assert [each.sent_s for each in driven(closed(1, 4, think_s=2.0), taking(1.0))] == [0, 3, 6, 9]


def test_thinking_has_the_mean_that_was_asked_for() -> None:
    """The mean of 4,000 exponential pauses is within 4 standard errors (mean / sqrt n) of it."""
    thinking = Thinking(5.0, "exponential", seed=2)
    pauses = [thinking.after(serial) for serial in range(4000)]
    assert abs(sum(pauses) / 4000 - 5) < 4 * 5 / 4000**0.5


def test_users_can_begin_one_after_another() -> None:
    """Four users over 2 s begin at 0, 0.5, 1 and 1.5 s, however many workers there are."""
    loop = closed(4, 4, stagger_s=2.0)
    parts = [driven(part, taking(9.0)) for part in loop.split(3)]
    assert sorted(each.sent_s for part in parts for each in part) == [0, 0.5, 1, 1.5]
    assert [each.sent_s for each in driven(loop, taking(9.0))] == [0, 0.5, 1, 1.5]


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 9])
def test_a_split_divides_users_and_requests_exactly(workers: int) -> None:
    """Together the workers' users are the loop's, and their asks the same bodies, each once."""
    loop = closed(5, 23)
    parts = [driven(pickle.loads(pickle.dumps(part)), taking(1.0)) for part in loop.split(workers)]
    assert sum(most_under_way(part) for part in parts) == 5
    together = sorted((each.ask for part in parts for each in part), key=lambda ask: ask.serial)
    assert together == sorted((each.ask for each in driven(loop, taking(1.0))), key=lambda ask: ask.serial)


def test_a_loop_without_end_goes_on_until_told() -> None:
    """Without a number of requests it is never finished, and two users at 1 s give 20 requests in 10 s."""
    loop = closed(2, None)
    assert len(driven(loop, taking(1.0), until_s=10.0)) == 20
    assert not loop.finished


def test_a_server_that_refuses_at_once_is_not_asked_in_a_rush() -> None:
    """A user whose request failed waits; in 10 s one user asks no more than 10 / AFTER_FAILURE_S times."""

    def refuse(due: Due, now_s: float) -> Exchange:
        return ended(due, now_s, now_s, outcome=Outcome.REFUSED)

    assert len(driven(closed(1, None), refuse, until_s=10.0)) <= 10 / AFTER_FAILURE_S + 1


def test_an_exchange_without_times_frees_its_user_nevertheless() -> None:
    """Nothing is known of it but when it was due: the user goes on from there."""
    loop = closed(1, 2)
    due = loop.take(0.0)
    assert due is not None
    assert loop.next_due_s() is None
    loop.ended(ended(due, nan, nan, outcome=Outcome.REFUSED))
    assert loop.next_due_s() == AFTER_FAILURE_S


def test_a_user_goes_on_when_the_failure_is_known() -> None:
    """Nothing came for 120 s after a first byte at 1 s: the next request is due then, not in the past."""
    loop = closed(1, 2)
    due = loop.take(0.0)
    assert due is not None
    assert loop.take(121.0) is None
    loop.ended(ended(due, 0.0, 1.0, outcome=Outcome.TIMED_OUT))
    assert loop.next_due_s() == 121.0 + AFTER_FAILURE_S


def test_wrong_settings_are_one_line() -> None:
    """No users, more than any machine opens, or a negative time to begin."""
    for concurrency, stagger_s in ((0, 0.0), (1, -1.0), (1, nan)):
        with pytest.raises(InputError):
            closed(concurrency, stagger_s=stagger_s)
