"""Counts of tokens beyond any answer."""

from __future__ import annotations

from servewise.measure.drive.believed import believed
from servewise.measure.exchange import Arrival


def test_a_billion_tokens_are_left_out_and_what_was_asked_for_is_not() -> None:
    """Usage of 10^9 for 5 asked is damage; 100,000 of 100,000 is an answer."""
    came = (Arrival(0.1), Arrival(0.2))
    assert believed(came, 10**9, 5) == (came, None)
    assert believed(came, 100_000, 100_000) == (came, 100_000)
    assert believed(came, None, 5) == (came, None)


def test_no_tokens_in_an_answer_that_came_is_no_count() -> None:
    """0 of two events is left out; 0 of none is a count."""
    came = (Arrival(0.1), Arrival(0.2))
    assert believed(came, 0, 5) == (came, None)
    assert believed((), 0, 5) == ((), 0)


def test_an_event_that_says_a_billion_says_nothing() -> None:
    """A running count that jumps: each event is then one of those that do not say."""
    came = (Arrival(0.1, 1), Arrival(0.2, 10**9))
    assert believed(came, 6, 5) == ((Arrival(0.1), Arrival(0.2)), 6)


def test_a_server_that_ignores_max_tokens_is_believed_what_came() -> None:
    """1,000 events of 1 token where 8 were asked for."""
    came = tuple(Arrival(0.1 * at, 1) for at in range(1_000))
    assert believed(came, 1_000, 8) == (came, 1_000)
