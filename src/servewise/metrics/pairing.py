"""Whether two runs held the same requests, and which row of one is which of the other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.metrics import latency
from servewise.records.columns import RequestColumns

Ints = NDArray[np.int64]
FEWEST_PAIRS = 20
LEAST_SHARED = 0.9  # of the completed requests of either run, how many must have completed in both
DISTINCT_LENGTHS = 5  # prompts of so many lengths that agree one by one are the same prompts


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a run that counts: the requests at ``rows``, and what came between ``start_s`` and ``end_s``."""

    requests: RequestColumns
    rows: Ints
    start_s: float
    end_s: float


def whole(requests: RequestColumns) -> Part:
    """All of a run, from the first schedule to the last end."""
    due, ended = latency.floats(requests.scheduled_s), latency.floats(requests.end_s)
    ended = ended[~np.isnan(ended)]
    start = float(due.min(initial=math.inf)) if len(due) else 0.0
    return Part(requests, np.arange(len(requests)), start, float(ended.max(initial=start)))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of run a and of run b that hold the same completed request, in order of their schedule in a."""

    a: Ints
    b: Ints

    def __len__(self) -> int:
        """How many."""
        return len(self.a)


@dataclass(frozen=True, slots=True)
class Matched:
    """Parts of two runs and the requests that are in both; one of these for each repeat."""

    a: Part
    b: Part
    pairs: Pairs


def pairs_of(a: Part, b: Part, *, same_seed: bool) -> Pairs | str:
    """The pairs, or why these are no runs of the same requests (words for people).

    The same are requests of one id whose prompts are equally long, up to one difference that all share (a template
    that one server counts). ``same_seed``: both runs drew their requests from one seed; without it the lengths must
    vary, and agree. Of the requests that completed in either run 90% must have completed in both (else the pairs are
    those that were easy for both), and at least 20 of them lie in both parts.
    """
    rows_a, rows_b = (latency.completed_by_schedule(each.requests) for each in (a, b))
    ids_a, ids_b = latency.ints(a.requests.id)[rows_a], latency.ints(b.requests.id)[rows_b]
    if len(np.unique(ids_a)) < len(ids_a) or len(np.unique(ids_b)) < len(ids_b):
        return "a request stands twice in one of them"
    _, in_a, in_b = np.intersect1d(ids_a, ids_b, return_indices=True)
    if len(in_a) < LEAST_SHARED * max(len(ids_a), len(ids_b)):
        return f"{len(in_a)} requests completed in both, of {len(ids_a)} and {len(ids_b)}"
    order = np.argsort(in_a)
    both = Pairs(rows_a[in_a[order]], rows_b[in_b[order]])
    inside = np.isin(both.a, a.rows) & np.isin(both.b, b.rows)
    found = Pairs(both.a[inside], both.b[inside])
    if len(found) < FEWEST_PAIRS:
        return f"only {len(found)} requests lie in the steady window of both"
    of_a, of_b = _lengths(a, found.a), _lengths(b, found.b)
    if len(np.unique(of_b - of_a)) > 1:
        return "their prompts are not of the same lengths"
    if not same_seed and len(np.unique(of_a)) < DISTINCT_LENGTHS:
        return "nothing shows that the requests are the same: no seed that both state, no lengths that vary"
    return found


def _lengths(part: Part, rows: Ints) -> Ints:
    return latency.ints(part.requests.prompt_tokens)[rows]
