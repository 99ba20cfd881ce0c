"""The latencies, each defined once, for simulated and measured runs alike.

``ttft`` first token minus scheduled (from the moment the request should have been sent, so that a late client or a full
queue counts); ``ttft_from_sent`` leaves out the client's own lateness. ``e2e`` end minus scheduled. ``tpot`` (end -
first token) / (output tokens - 1), for requests of at least 2 tokens. ``itl`` the gap between a request's successive
tokens, over all tokens. A static batch releases its answers together: there ``end`` is the batch's end, and ``tpot``
and ``e2e`` hold the wait for the longest.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from servewise.records.columns import COMPLETED, RequestColumns, StepColumns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    """Time per output token after the first [s], (end - first token) / (tokens - 1); NaN below 2 tokens."""
    after_first: Floats = (ints(requests.output_tokens) - 1).astype(np.float64)
    after_first[after_first < 1] = np.nan
    decode_s = floats(requests.end_s) - floats(requests.first_token_s)
    each: Floats = decode_s / after_first
    return each


def itl_of_tokens(requests: RequestColumns) -> Floats:
    """Gaps between the successive tokens of each request [s], from the tokens' own times, in order of the rows."""
    if requests.token_times is None:
        return np.empty(0)
    offsets, times = ints(requests.token_times.offsets), floats(requests.token_times.times)
    gaps = np.diff(times)
    within = np.ones(len(gaps), bool)
    borders = offsets[1:-1]
    within[borders[(borders > 0) & (borders < len(times))] - 1] = False
    return gaps[within]


def itl_of_steps(steps: StepColumns) -> tuple[Floats, Floats]:
    """Gaps between tokens [s] and how many tokens came after each, from the steps, in order of time.

    A decode step of d sequences gives d gaps of its own length (steps in one row count at their mean). A prefill
    without decode, between two decode steps, holds up those that were decoding: their next gap runs from the end of
    the last decode step. A sequence that got its first token in such a prefill waits from that prefill's end.
    Left out: the longer gap of a preempted sequence. Where ``active`` was not recorded no stall is known.
    """
    decode = ints(steps.decode_sequences)
    rows = np.flatnonzero(decode > 0)
    mean_s = floats(steps.seconds) / ints(steps.steps)
    plain = (decode * ints(steps.steps)).astype(float)
    stalls = _stalls(steps, decode, rows, mean_s)
    np.subtract.at(plain, stalls[0], stalls[2])
    after = np.concatenate((rows, stalls[0]))
    order = np.argsort(after, kind="stable")
    values, weights = np.concatenate((mean_s[rows], stalls[1])), np.concatenate((plain[rows], stalls[2]))
    return values[order], weights[order]


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
    held_up = rows[1:][np.diff(rows) > 1]
    before = rows[np.searchsorted(rows, held_up) - 1]
    old = np.maximum(decode[held_up] - fresh_at[held_up], 0.0)
    return (
        np.concatenate((ends_in, held_up)),
        np.concatenate((token_s[ends_in] - end_s[prefills], token_s[held_up] - end_s[before])),
        np.concatenate((fresh, old)),
    )
