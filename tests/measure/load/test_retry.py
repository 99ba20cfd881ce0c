"""A 429 is honoured: the wait that the server names, a bounded number, the scheduled time kept."""

from __future__ import annotations

from itertools import pairwise
from math import isnan

from tests.measure.exchanges import exchange
from tests.measure.load.driving import Answer, driven, ended

from servewise.measure.exchange import Exchange
from servewise.measure.load.fixed import one_by_one
from servewise.measure.load.retry import RetryRule, RetrySchedule, last_attempts
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due


def asks(count: int) -> list[Due]:
    """Asks by their serials."""
    return [Due(exchange(serial=serial).ask, 0.0) for serial in range(count)]


def limited(times: int, retry_after_s: float | None) -> Answer:
    """Each request is refused with a 429 so many times, then answered after 1 s."""

    def answer(due: Due, now_s: float) -> Exchange:
        if due.retries < times:
            outcome = Outcome.RATE_LIMITED
            return ended(due, now_s, now_s, outcome=outcome, http_status=429, retry_after_s=retry_after_s)
        return ended(due, now_s, now_s + 1.0)

    return answer


def loop(count: int, rule: RetryRule) -> RetrySchedule:
    """One user after another, with that rule."""
    return RetrySchedule(one_by_one([due.ask for due in asks(count)]), rule)


def test_retry_after_is_waited_for_exactly() -> None:
    """Two refusals of 5 s each: the answer comes at 11 s, its wait counted from the first schedule."""
    done = driven(loop(1, RetryRule(most=3)), limited(2, 5.0))
    assert [each.sent_s for each in done] == [0, 5, 10]
    assert [each.retries for each in done] == [0, 1, 2]
    assert {each.scheduled_s for each in done} == {0.0}
    assert [each.outcome for each in last_attempts(done)] == [Outcome.COMPLETED]
    assert last_attempts(done)[0].end_s == 11


def test_the_number_of_repeats_is_bounded() -> None:
    """After so many it is given up, the last attempt's outcome is the request's, and the user goes on."""
    done = driven(loop(2, RetryRule(most=2)), limited(9, 1.0))
    assert [(each.ask.serial, each.retries) for each in done] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert [each.outcome for each in last_attempts(done)] == [Outcome.RATE_LIMITED] * 2


def test_a_wait_beyond_the_longest_is_not_made() -> None:
    """A server that says an hour is not asked again within the run."""
    done = driven(loop(1, RetryRule(longest_s=60.0)), limited(9, 3600.0))
    assert len(done) == 1


def test_without_retry_after_waits_grow_and_differ() -> None:
    """Waits lie within first_s x 2^n, are not the same for two requests, and stop growing at the longest."""
    rule = RetryRule(most=6, first_s=1.0, longest_s=4.0, seed=3)
    done = driven(loop(1, rule), limited(6, None))
    waits = [after.sent_s - before.end_s for before, after in pairwise(done)]
    assert all(0 <= wait_s <= min(2.0**n, 4.0) for n, wait_s in enumerate(waits))
    refused = [exchange(serial=serial, outcome=Outcome.RATE_LIMITED) for serial in range(50)]
    drawn = {rule.wait_s(each, 0) for each in refused}
    assert len(drawn) == 50


def test_other_failures_are_not_repeated() -> None:
    """Only a 429 asks for it; a 500 may have been worked on."""
    failing: Answer = lambda due, now_s: ended(due, now_s, now_s, outcome=Outcome.SERVER_ERROR)  # noqa: E731
    assert len(driven(loop(3, RetryRule()), failing)) == 3


def test_it_is_not_finished_while_a_429_may_come() -> None:
    """The inner schedule has nothing left, but what is under way may have to be sent again."""
    schedule = loop(1, RetryRule())
    due = schedule.take(0.0)
    assert due is not None
    assert not schedule.finished
    schedule.ended(ended(due, 0.0, 0.0, outcome=Outcome.RATE_LIMITED, retry_after_s=2.0))
    assert schedule.next_due_s() == 2
    again = schedule.take(2.0)
    assert again is not None
    assert (again.ready_s, again.scheduled_s, again.retries) == (2.0, 0.0, 1)
    schedule.ended(ended(again, 2.0, 3.0))
    assert schedule.finished


def test_a_split_keeps_the_rule() -> None:
    """Every part repeats its own, and together they answer all."""
    done = [each for part in loop(4, RetryRule()).split(2) for each in driven(part, limited(1, 1.0))]
    assert sorted(each.ask.serial for each in last_attempts(done)) == [0, 1, 2, 3]
    assert not any(isnan(each.end_s) for each in done)
