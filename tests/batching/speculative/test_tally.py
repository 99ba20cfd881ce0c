"""Tallies of several servers put together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servewise.batching.speculative.tally import Tally

steps = st.integers(0, 4).flatmap(
    lambda drafted: st.tuples(
        st.just(drafted),
        st.lists(st.integers(0, 5), min_size=drafted + 1, max_size=drafted + 1),
        st.integers(0, 30),
    )
)


@given(st.lists(steps, max_size=6), st.lists(steps, max_size=6))
def test_the_sum_of_two_is_one_that_saw_all(
    first: list[tuple[int, list[int], int]], then: list[tuple[int, list[int], int]]
) -> None:
    """However long the drafts of either were, and in whichever order they are added."""
    whole, one, other = Tally(), Tally(), Tally()
    for tally, seen in ((one, first), (other, then)):
        for step in seen:
            tally.add(*step)
            whole.add(*step)

    assert one.plus(other) == other.plus(one) == whole
