"""Exchanges as records, and the latencies that come of them, by hand."""

from __future__ import annotations

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measure.exchanges import exchange

from servewise.measure.outcome import Outcome
from servewise.measure.recording import Recorder, columns, shared_out, tokens_by_event
from servewise.metrics import latency
from servewise.metrics.slo import parse_slo
from servewise.metrics.summary import summarise
from servewise.records.columns import CANCELLED, COMPLETED, FAILED


def test_several_tokens_in_one_event_leave_tpot_right() -> None:
    """The field's mistake of 9.0 for a true 10 ms: 64 tokens, 4 an event and an event each 40 ms, are 10 ms a token."""
    rows = columns([exchange([(0.2 + 0.04 * event, 4) for event in range(16)], output_tokens=64)])
    assert latency.tpot(rows).tolist() == pytest.approx([0.010])
    assert latency.itl_of_tokens(rows) == pytest.approx([0.04] * 15)
    assert latency.tokens_per_event(rows) == 4.0


def test_the_servers_count_is_shared_out_where_events_do_not_say() -> None:
    """The same stream without token counts in its events: the server's usage of 64 makes it 10 ms a token again."""
    rows = columns([exchange([(0.2 + 0.04 * event, None) for event in range(16)], output_tokens=64)])
    assert latency.tpot(rows).tolist() == pytest.approx([0.010])
    assert list(rows.output_tokens) == [64]


def test_a_stream_that_lingers_after_its_last_token_is_not_slower() -> None:
    """Tokens at 1.0, 1.1 and 1.2 s, and the end 5 s later (usage, [DONE]): TPOT is 0.1 s, end to end 6.2 s."""
    rows = columns([exchange([(1.0, 1), (1.1, 1), (1.2, 1)], output_tokens=3, end_s=6.2)])
    assert latency.tpot(rows).tolist() == pytest.approx([0.1])
    assert latency.e2e(rows).tolist() == [6.2]


def test_events_that_came_at_one_time_are_one() -> None:
    """Two events under one kernel stamp, then two tokens 0.3 s apart: 2 tokens after the first time, TPOT 0.3 s."""
    rows = columns([exchange([(1.0, 1), (1.0, 1), (1.3, 1), (1.6, 1)], output_tokens=4)])
    assert latency.tpot(rows).tolist() == pytest.approx([0.3])
    assert latency.itl_of_tokens(rows).tolist() == pytest.approx([0.3, 0.3])


def test_one_event_has_no_tpot() -> None:
    """An answer that came whole, however many tokens, spans no time between tokens."""
    rows = columns([exchange([(1.0, 30)], output_tokens=30), exchange([], output_tokens=0), exchange([(2.0, 1)])])
    assert all(isnan(each) for each in latency.tpot(rows))


def test_an_end_of_text_token_that_no_event_shows_does_not_make_tpot_shorter() -> None:
    """63 events 20 ms apart and a server that counts 64 tokens: 20 ms a token, as the gaps are."""
    rows = columns([exchange([(1 + 0.02 * event, None) for event in range(63)], output_tokens=64)])
    assert latency.tpot(rows).tolist() == pytest.approx([0.02])


def test_ttft_from_the_schedule_and_from_sending() -> None:
    """Due at 1, sent at 1.4, first token at 2: 1 s from the schedule, 0.6 s from sending."""
    rows = columns([exchange([(2.0, 1), (2.5, 1)], scheduled=1.0, sent=1.4)])
    assert latency.ttft(rows).tolist() == [1.0]
    assert latency.ttft_from_sent(rows).tolist() == pytest.approx([0.6])


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.COMPLETED])
def test_a_failed_request_enters_no_latency_and_no_rate(outcome: Outcome) -> None:
    """However a request failed, beside one that completed it changes no latency, only the count of failures."""
    good = exchange([(1.0, 1), (2.0, 1)], serial=1)
    bad = exchange([(0.001, 1), (9.0, 1)], serial=2, outcome=outcome, reason="why", end_s=2.0)
    alone, both = summarise(columns([good])), summarise(columns([good, bad]), slo=parse_slo("ttft_p95<=1s"))
    assert (both.ttft, both.tpot, both.itl, both.e2e) == (alone.ttft, alone.tpot, alone.itl, alone.e2e)
    assert (both.completed, both.failed, both.output_tokens_per_s) == (1, 1, alone.output_tokens_per_s)
    assert (both.goodput_per_s, both.output_tokens) == (0.5, 2)


def test_each_end_has_its_status_and_its_reason() -> None:
    """Completed, cancelled, and failed for the rest; the error is the outcome and one line of why."""
    found = columns(
        [
            exchange([(1.0, 1)]),
            exchange(outcome=Outcome.CANCELLED),
            exchange(outcome=Outcome.ERROR_IN_STREAM, reason="out of\nmemory"),
        ]
    )
    assert list(found.status) == [COMPLETED, CANCELLED, FAILED]
    assert found.errors == {1: "cancelled", 2: "error-in-stream: out of memory"}


def test_counts_that_rows_do_not_hold_are_told() -> None:
    """Two completed (one counted by usage and with 8 cached tokens) and one reset after 2 retries: each is counted."""
    recorder = Recorder()
    recorder.add(exchange([(1.0, 2)], output_tokens=2, counted_by="usage", cached_tokens=8, finish_reason="stop"))
    recorder.add(exchange([(1.0, 1), (2.0, 1)], fresh_connection=False, stamped="kernel", finish_reason="length"))
    recorder.add(exchange(outcome=Outcome.RESET, retries=2))
    assert recorder.details() == {
        "outcomes": {"completed": 2, "reset": 1},
        "counted_by": {"events": 1, "usage": 1},
        "stamped": {"kernel": 1, "user": 1},
        "finish_reason": {"length": 1, "stop": 1},
        "retries": 2,
        "fresh_connections": 2,
        "cached_known": 1,
        "events": 3,
    }


def test_prompt_tokens_are_the_servers_count_first() -> None:
    """The server said 12, the prompt was made for 10; where it says nothing the latter stands."""
    assert list(columns([exchange(prompt_tokens=12), exchange()]).prompt_tokens) == [12, 10]


def test_without_a_servers_count_events_are_counted() -> None:
    """No usage: events that say 2 and nothing are 3 tokens, with as many times."""
    rows = columns([exchange([(1.0, 2), (2.0, None)])])
    assert rows.token_times is not None
    assert (list(rows.output_tokens), list(rows.token_times.times)) == ([3], [1.0, 1.0, 2.0])


def test_what_events_say_is_kept_beside_the_shared_rest() -> None:
    """Of 9 tokens an event says 3; the other 6 go to the two that do not say."""
    assert tokens_by_event(exchange([(1.0, None), (2.0, 3), (3.0, None)]).arrivals, 9) == [3, 3, 3]


def test_fewer_tokens_than_events_span_the_stream() -> None:
    """3 tokens in 5 events stand at the first, the middle and the last, so that TPOT covers the whole stream."""
    assert shared_out(3, 5) == [1, 0, 1, 0, 1]


@given(tokens=st.integers(0, 300), events=st.integers(1, 300))
def test_sharing_out_loses_nothing_and_is_even(tokens: int, events: int) -> None:
    """All tokens are given out, no event gets more than one more than another, the first is never the poorest."""
    shares = shared_out(tokens, events)
    assert sum(shares) == tokens
    assert max(shares) - min(shares) <= 1
    assert shares[0] == max(shares)
