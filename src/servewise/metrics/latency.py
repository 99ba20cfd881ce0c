"""The latencies, each defined once, for simulated and measured runs alike.

``ttft`` first token minus scheduled (from the moment the request should have been sent, so that a late client or a full
queue counts); ``ttft_from_sent`` leaves out the client's own lateness. ``e2e`` end minus scheduled. ``tpot`` (last
token - first token) / (output tokens - 1), for requests of at least 2 tokens. ``itl`` the gap between a request's
successive tokens, over all tokens. Only completed requests enter any of them.

From inside (simulator, engine) each token is known by itself. A static batch releases its answers together: there the
last token counts as come at the batch's ``end``, and ``tpot`` and ``e2e`` hold the wait for the longest.

From outside (a load client: token times, and no admission) tokens come in events, perhaps several in one. ``tpot`` is
then (last - first) / (tokens - tokens in the first event): the first event's tokens share one time and span no gap, and
what a stream holds after its last token (usage, [DONE]) is not waited for. ``itl`` is the gap between a request's
successive events; ``tokens_per_event`` tells how many tokens each brings.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from servewise.records.columns import COMPLETED, RequestColumns, StepColumns
from servewise.records.selection import steps_in_turn

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GRAIN = 2.0**-20  # tokens are counted to it, so that sums of up to 2^33 of them are exact in any order


def floats(column: array[float]) -> Floats:
    """A column of floats as NumPy, without a copy."""
    return np.frombuffer(column, np.float64) if len(column) else np.empty(0)


def ints(column: array[int]) -> Ints:
    """A column of whole numbers as NumPy, without a copy."""
    return np.frombuffer(column, np.int64) if len(column) else np.empty(0, np.int64)


def completed_by_schedule(requests: RequestColumns) -> Ints:
    """The rows of completed requests, in order of their scheduled time (ties by id)."""
    rows = np.flatnonzero(ints(requests.status) == COMPLETED)
    return rows[np.lexsort((ints(requests.id)[rows], floats(requests.scheduled_s)[rows]))]


def ttft(requests: RequestColumns) -> Floats:
    """Time to first token [s], first token - scheduled, of every row."""
    return floats(requests.first_token_s) - floats(requests.scheduled_s)


def ttft_from_sent(requests: RequestColumns) -> Floats:
    """Time to first token [s], first token - sent, of every row."""
    return floats(requests.first_token_s) - floats(requests.sent_s)


def e2e(requests: RequestColumns) -> Floats:
    """End-to-end latency [s], end - scheduled, of every row."""
    return floats(requests.end_s) - floats(requests.scheduled_s)


def tpot(requests: RequestColumns) -> Floats:
    """Time per output token after the first [s] of every row, as the module says; NaN below 2 tokens or events."""
    return _tpot_of_events(requests) if from_outside(requests) else _tpot_to_end(requests)


def from_outside(requests: RequestColumns) -> bool:
    """Whether a client made the record: it knows when each token came, and never when a request was admitted."""
    return requests.token_times is not None and bool(np.isnan(floats(requests.admitted_s)).all())


def _tpot_to_end(requests: RequestColumns) -> Floats:
    after_first: Floats = (ints(requests.output_tokens) - 1).astype(np.float64)
    after_first[after_first < 1] = np.nan
    decode_s = floats(requests.end_s) - floats(requests.first_token_s)
    each: Floats = decode_s / after_first
    return each


def _tpot_of_events(requests: RequestColumns) -> Floats:
    assert requests.token_times is not None
    offsets, times = ints(requests.token_times.offsets), floats(requests.token_times.times)
    tokens = np.diff(offsets)
    span, after_first = np.full(len(tokens), np.nan), np.full(len(tokens), np.nan)
    some = tokens > 0
    first, last = times[offsets[:-1][some]], times[offsets[1:][some] - 1]
    at_first = np.cumsum(np.concatenate(([0], times == np.repeat(first, tokens[some]))))
    span[some] = last - first
    after_first[some] = tokens[some] - (at_first[offsets[1:][some]] - at_first[offsets[:-1][some]])
    after_first[after_first < 1] = np.nan
    each: Floats = span / after_first
    return each


def itl_of_tokens(requests: RequestColumns) -> Floats:
    """Gaps between the successive events of each completed request [s], in order of the rows.

    An event is all tokens of one time; from inside every token is one.
    """
    return gaps_by_row(requests)[0]


def gaps_by_row(requests: RequestColumns) -> tuple[Floats, Ints]:
    """The gaps of ``itl_of_tokens`` and the row of each; none where no token time is known."""
    times, row = _events(requests)
    within = row[1:] == row[:-1]
    return np.diff(times)[within], row[1:][within]


def token_arrivals(requests: RequestColumns) -> tuple[Floats, Floats]:
    """When the output of completed requests came [s] and how many tokens each time.

    Of a request whose token times are known, its tokens are spread over those; of another, they came at its end.
    """
    rows = np.flatnonzero(ints(requests.status) == COMPLETED)
    tokens = np.zeros(len(requests))
    tokens[rows] = ints(requests.output_tokens)[rows]
    if requests.token_times is None:
        return floats(requests.end_s)[rows], tokens[rows]
    known = np.diff(ints(requests.token_times.offsets))
    each = np.repeat(tokens / np.maximum(known, 1), known)
    whole = rows[known[rows] == 0]
    times = np.concatenate((floats(requests.token_times.times), floats(requests.end_s)[whole]))
    return times, np.concatenate((each, tokens[whole]))


def tokens_per_event(requests: RequestColumns) -> float:
    """Tokens over events of the completed requests; NaN where no token time is known."""
    times, _ = _events(requests)
    if len(times) == 0 or requests.token_times is None:
        return float("nan")
    tokens = np.diff(ints(requests.token_times.offsets))[ints(requests.status) == COMPLETED]
    return float(tokens.sum() / len(times))


def _events(requests: RequestColumns) -> tuple[Floats, Ints]:
    """Of completed requests: the distinct token times in order, and the row of each."""
    if requests.token_times is None:
        return np.empty(0), np.empty(0, np.int64)
    times = floats(requests.token_times.times)
    tokens = np.diff(ints(requests.token_times.offsets))
    row = np.repeat(np.arange(len(tokens)), tokens)
    begins = np.ones(len(times), bool)
    begins[1:] = (np.diff(times) != 0) | (np.diff(row) != 0)
    begins &= (ints(requests.status) == COMPLETED)[row]
    return times[begins], row[begins]


def itl_of_steps(steps: StepColumns) -> tuple[Floats, Floats]:
    """Gaps between tokens [s] and how many tokens came after each, from the steps, in order of time.

    A decode step of d sequences gives d gaps of its own length (steps in one row count at their mean). A prefill
    without decode, between two decode steps of its replica, holds up those that were decoding: their next gap runs
    from the end of the last decode step. A sequence that got its first token in such a prefill waits from its end.
    Left out: the longer gap of a preempted sequence. Where ``active`` was not recorded no stall is known.
    """
    parts = [(places, *gaps_of(part)) for places, part in steps_in_turn(steps)]
    after = np.concatenate([places[rows] for places, rows, _, _ in parts])
    order = np.argsort(after, kind="stable")
    values, weights = (np.concatenate([part[which] for part in parts]) for which in (2, 3))
    return values[order], weights[order]


def gaps_of(steps: StepColumns) -> tuple[Ints, Floats, Floats]:
    """Of one replica: the row that ends each gap, the gap, and how many tokens came after it."""
    decode = ints(steps.decode_sequences)
    rows = np.flatnonzero(decode > 0)
    mean_s = floats(steps.seconds) / ints(steps.steps)
    plain = (decode * ints(steps.steps)).astype(float)
    stalls = _stalls(steps, decode, rows, mean_s)
    np.subtract.at(plain, stalls[0], stalls[2])
    after = np.concatenate((rows, stalls[0]))
    return after, np.concatenate((mean_s[rows], stalls[1])), np.concatenate((plain[rows], stalls[2]))


def _stalls(steps: StepColumns, decode: Ints, rows: Ints, mean_s: Floats) -> tuple[Ints, Floats, Floats]:
    """Of gaps that a prefill without decode lengthened: the decode row that ends them, their length, their number."""
    prefills = np.flatnonzero(decode == 0)
    if len(steps.active) != len(steps) or len(rows) == 0:
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
    prefills = prefills[prefills < rows[-1]]
    start_s, end_s = floats(steps.start_s), floats(steps.start_s) + floats(steps.seconds)
    token_s = start_s + mean_s
    ends_in = rows[np.searchsorted(rows, prefills)]
    fresh = ints(steps.active)[prefills].astype(float)
    fresh_at = np.bincount(ends_in, fresh, len(decode))
    fresh *= np.minimum(1.0, decode[ends_in] / np.maximum(fresh_at[ends_in], 1.0))  # some ended with their first token
    fresh = np.rint(fresh / GRAIN) * GRAIN
    held_up = rows[1:][np.diff(rows) > 1]
    before = rows[np.searchsorted(rows, held_up) - 1]
    old = np.maximum(decode[held_up] - fresh_at[held_up], 0.0)
    return (
        np.concatenate((ends_in, held_up)),
        np.concatenate((token_s[ends_in] - end_s[prefills], token_s[held_up] - end_s[before])),
        np.concatenate((fresh, old)),
    )
