"""Sums and maxima of lines against evaluating each kind by itself."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.steptime.estimator import Line
from servewise.steptime.lines import envelope, largest, summed

numbers = st.floats(0.0, 10.0)
bases = st.floats(-5.0, 10.0)
full = st.builds(Line, bases, numbers, st.just(0.0))
windowed = st.builds(lambda base, slope: Line(base, 0.0, slope), bases, numbers)
both = st.builds(Line, bases, numbers, numbers)
kinds = st.one_of(*(st.lists(each, min_size=1, max_size=4) for each in (full, windowed, both)))


@given(st.lists(kinds, max_size=4), st.floats(0, 100), st.floats(0, 100))
@settings(max_examples=300, deadline=None)
def test_sum_of_maxima(groups: list[list[Line]], context: float, seen: float) -> None:
    """The largest of the summed lines is the sum of each kind's largest, at any context."""
    expected = sum(largest(lines, context, seen) for lines in groups)

    assert math.isclose(largest(summed(groups), context, seen), expected, rel_tol=1e-9, abs_tol=1e-9)


@given(st.lists(full, min_size=1, max_size=12), st.floats(0, 1000))
@settings(max_examples=300, deadline=None)
def test_envelope_loses_nothing(lines: list[Line], context: float) -> None:
    """Lines that the envelope drops are nowhere the largest."""
    assert math.isclose(largest(envelope(lines), context, 0), largest(lines, context, 0), rel_tol=1e-9, abs_tol=1e-9)


def test_many_kinds_leave_few_lines() -> None:
    """Forty kinds of layer of four lines each do not make 4^40 lines."""
    many = [[Line(i / 10, 0.0), Line(0.0, 1.0 + i), Line(0.05 * i, 0.5), Line(-1.0, 2.0 + i)] for i in range(1, 41)]

    assert len(summed(many)) <= 40 * 4
