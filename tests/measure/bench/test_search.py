"""The search for the highest load, against servers whose limit is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.measure.bench.search import MOST_STREAMS, MOST_TRIES, PRECISION, Knee, Search, Tried


def searched(limit: float, first: float, *, whole: bool) -> Knee:
    """The search on a server that holds up to ``limit`` and never above."""
    return Search(lambda level: Tried(level, 3 * (level <= limit), 3, level <= limit), whole=whole).run(first)


@given(st.floats(0.01, 5e4), st.floats(0.001, 1e5))
def test_a_rates_limit_is_found_from_anywhere(limit: float, first: float) -> None:
    """Whatever the first guess: the limit lies in the knee, the knee is within 5%, and the tries are bounded."""
    knee = searched(limit, first, whole=False)

    assert knee.low <= limit < knee.high
    assert knee.best == knee.low
    assert knee.high <= knee.low * (1 + PRECISION) * 1.001
    assert len(knee.tries) <= MOST_TRIES


@given(st.integers(1, 3000), st.integers(1, 4000))
def test_streams_are_found_to_the_whole_number_or_to_5_percent(limit: int, first: int) -> None:
    """Below 20 streams the exact number; above, within 5%."""
    knee = searched(limit, first, whole=True)

    assert knee.low <= limit < knee.high
    assert knee.high - knee.low == 1 or knee.high <= knee.low * (1 + PRECISION)
    assert all(each.level == int(each.level) for each in knee.tries)


def test_a_server_that_never_holds_has_no_knee_and_an_end() -> None:
    """Down to one stream, then best is 0 and the knee is from 0 to 1."""
    knee = searched(0, 8, whole=True)

    assert (knee.best, knee.low, knee.high) == (0, 0, 1)


def test_a_server_that_always_holds_is_not_asked_without_end() -> None:
    """Up to the most streams, and the knee says that no level failed."""
    knee = searched(math.inf, 1, whole=True)

    assert knee.best == MOST_STREAMS
    assert knee.high == math.inf


def test_repeats_that_do_not_agree_widen_the_knee() -> None:
    """From 8 to 12 they differ: the knee reaches from the last level that all kept to the first that all failed."""

    def tried(level: float) -> Tried:
        kept = 3 if level <= 8 else 0 if level > 12 else 2 if level <= 10 else 1
        return Tried(level, kept, 3, kept >= 2)

    knee = Search(tried, whole=True).run(1)

    assert knee.best == 10
    assert knee.low <= 8
    assert knee.high > 12
    assert knee.monotonic


def test_a_server_that_is_not_monotonic_is_told() -> None:
    """A level that holds above one that fails breaks what bisection takes for granted."""
    held = {1.0: True, 2.0: False, 4.0: True}
    knee = Knee(1, 1, 2, tuple(Tried(level, 3 * ok, 3, ok) for level, ok in held.items()))

    assert not knee.monotonic


def test_an_interrupted_search_keeps_what_it_tried() -> None:
    """Ctrl-C after two levels leaves a knee of two levels."""
    done: list[float] = []

    def tried(level: float) -> Tried:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(level)
        return Tried(level, 1, 1, held=True)

    search = Search(tried, whole=True)
    with pytest.raises(KeyboardInterrupt):
        search.run(4)

    assert (search.knee().best, search.knee().high) == (8, math.inf)


def test_a_request_that_fails_alone_ends_the_search() -> None:
    """Below 3 requests/s no request meets another: when that fails too, rates of hours a request are not tried."""
    knee = Search(lambda level: Tried(level, 0, 3, held=False, alone=level < 3), whole=False).run(50.0)

    assert [each.level for each in knee.tries] == [50, 25, 12.5, 6.25, 3.12, 1.56]
    assert (knee.best, knee.low, knee.high) == (0, 0, 1.56)
