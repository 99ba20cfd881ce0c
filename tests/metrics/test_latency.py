"""Each latency by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.metrics import made

from servewise.metrics import latency
from servewise.records.columns import FAILED, TokenTimes


def test_ttft_tpot_and_e2e_by_hand() -> None:
    """Scheduled at 1, sent at 1.5, first token at 2, last of 5 at 4: TTFT 1 (0.5 from sent), TPOT 0.5, e2e 3 s."""
    run = made.requests([1.0], [2.0], [4.0], [5], sent=[1.5])
    assert latency.ttft(run).tolist() == [1.0]
    assert latency.ttft_from_sent(run).tolist() == [0.5]
    assert latency.tpot(run).tolist() == [0.5]
    assert latency.e2e(run).tolist() == [3.0]


def test_one_token_has_no_tpot() -> None:
    """TPOT is the time between tokens: an answer of one token, or of none, has NaN and not 0 or infinity."""
    run = made.requests([0.0, 0.0], [1.0, np.nan], [1.0, 2.0], [1, 0])
    assert np.isnan(latency.tpot(run)).all()


def test_several_tokens_at_once_are_one_event() -> None:
    """Tokens at 1, 1, 3 and, of another request, 10, 11: an event of two and gaps 2 and 1; none between requests."""
    run = made.requests([0.0] * 4, [1.0] * 4, [3.0] * 4, [3, 0, 2, 1])
    run.token_times = TokenTimes()
    for times in ([1.0, 1.0, 3.0], [], [10.0, 11.0], [12.0]):
        run.token_times.append(times)
    assert latency.itl_of_tokens(run).tolist() == [2.0, 1.0]


def test_token_gaps_of_empty_and_first_empty_requests() -> None:
    """No tokens at all, and empty requests at either end, give no gap that is not there."""
    run = made.requests([0.0] * 3, [1.0] * 3, [3.0] * 3, [0, 2, 0])
    run.token_times = TokenTimes()
    for times in ([], [5.0, 7.0], []):
        run.token_times.append(times)
    assert latency.itl_of_tokens(run).tolist() == [2.0]
    run.token_times = TokenTimes()
    for times in ([1.0], [5.0, 7.0], [9.0]):
        run.token_times.append(times)
    assert latency.itl_of_tokens(run).tolist() == [2.0]
    run.token_times = TokenTimes()
    assert latency.itl_of_tokens(run).tolist() == []


def gaps(rows: list[tuple[float, float, int, int, int]]) -> dict[float, float]:
    """Gap [s] to tokens, of steps (start_s, seconds, steps, decode_sequences, active)."""
    values, weights = latency.itl_of_steps(made.steps(rows))
    found: dict[float, float] = {}
    for value, weight in zip(values.round(9).tolist(), weights.tolist(), strict=True):
        if weight:
            found[value] = found.get(value, 0) + weight
    return found


def test_decode_steps_give_a_gap_to_each_sequence() -> None:
    """10 steps of 3 sequences over 0.5 s, then 4 of 2 over 0.1 s: 30 gaps of 50 ms and 8 of 25 ms."""
    assert gaps([(0.0, 0.5, 10, 3, 3), (0.5, 0.1, 4, 2, 2)]) == {0.05: 30, 0.025: 8}


def test_a_prefill_holds_up_those_that_decode() -> None:
    """3 decode; a prefill of 1 s admits 2; then 4 steps of 5 in 0.4 s.

    The 3 wait 1.1 s for their next token, the 2 wait 0.1 s after their first, then all 5 go on at 0.1 s.
    """
    rows = [(0.0, 0.5, 10, 3, 3), (0.5, 1.0, 1, 0, 2), (1.5, 0.4, 4, 5, 5)]
    assert gaps(rows) == {0.05: 30, 1.1: 3, 0.1: 2 + 15}


def test_prefills_in_a_row_add_up() -> None:
    """1 decodes; prefills of 1 s and 2 s admit one each; then 1 step of 3 in 0.1 s: gaps 3.1, 2.1 and 0.1 s."""
    rows = [(0.0, 0.1, 1, 1, 1), (0.1, 1.0, 1, 0, 1), (1.1, 2.0, 1, 0, 1), (3.1, 0.1, 1, 3, 3)]
    assert gaps(rows) == {0.1: 2, 3.1: 1, 2.1: 1}


def test_an_idle_server_holds_nobody_up() -> None:
    """A request decodes and ends; 100 s later another is prefilled and decodes: no gap of 100 s."""
    assert gaps([(0.0, 0.1, 1, 1, 1), (100.0, 1.0, 1, 0, 1), (101.0, 0.2, 2, 1, 1)]) == {0.1: 3}


def test_an_idle_server_without_prefill_holds_nobody_up_either() -> None:
    """Where prompts cost no step (the study's unit steps), idle time between two decode steps is no gap."""
    assert gaps([(0.0, 0.1, 1, 1, 1), (100.0, 0.2, 2, 1, 1)]) == {0.1: 3}


def test_gaps_never_outnumber_those_that_decode() -> None:
    """A prefill gives 4 their first token, a second one 1 more; only 2 go on: 2 gaps were held up, shared 4 to 1."""
    found = gaps([(0.0, 1.0, 1, 0, 4), (1.0, 1.0, 1, 0, 1), (2.0, 0.5, 5, 2, 2)])
    assert found == pytest.approx({1.1: 2 * 4 / 5, 0.1: 2 * 1 / 5 + 8})


def test_answers_of_one_token_leave_no_gap() -> None:
    """A prefill that gives 3 sequences their only token, beside 1 that goes on: 1 gap in all after it."""
    assert sum(gaps([(0.0, 1.0, 1, 0, 4), (1.0, 0.5, 5, 1, 1)]).values()) == 5


def test_prefill_at_the_end_and_steps_without_active() -> None:
    """A prefill that no decode follows gives no gap; where ``active`` is not recorded steps count as they are."""
    assert gaps([(0.0, 0.1, 1, 1, 1), (0.1, 1.0, 1, 0, 1)]) == {0.1: 1}
    steps = made.steps([(0.0, 0.1, 1, 2, 0), (0.1, 1.0, 1, 0, 0), (1.1, 0.1, 1, 2, 0)])
    steps.active = made.ints([])
    values, weights = latency.itl_of_steps(steps)
    assert values.tolist() == pytest.approx([0.1, 0.1])
    assert weights.tolist() == [2, 2]


def test_completed_rows_come_in_order_of_schedule() -> None:
    """Rows are written as requests end; blocks of time need them as they were scheduled, the failed left out."""
    run = made.requests([3.0, 1.0, 2.0, 1.0], [4.0] * 4, [5.0] * 4, [2] * 4, status=[0, 0, FAILED, 0])
    assert latency.completed_by_schedule(run).tolist() == [1, 3, 0]
