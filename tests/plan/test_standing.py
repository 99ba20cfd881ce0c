"""Dominance is a strict order, and whoever is not dominated is on the front."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from servewise.plan.standing import Standing, dominator

numbers = st.integers(1, 4).map(float)
standings = st.builds(Standing, cost=numbers, rate_per_accelerator_per_s=numbers, alone_s=st.tuples(numbers, numbers))


def figures(of: Standing) -> tuple[float, ...]:
    """All of it as costs: smaller is better."""
    return of.cost, 1 / of.rate_per_accelerator_per_s, *of.alone_s


@given(standings, standings, standings)
def test_a_strict_order(one: Standing, two: Standing, three: Standing) -> None:
    """Nobody dominates itself or who dominates it, and who is dominated by a dominated one is dominated."""
    assert not one.dominates(one)
    assert not (one.dominates(two) and two.dominates(one))
    assert one.dominates(three) or not (one.dominates(two) and two.dominates(three))


@given(st.lists(standings, min_size=1, max_size=8))
def test_the_front(found: list[Standing]) -> None:
    """On it are those than whom none is as good in every figure and different, which is Pareto's condition."""
    for each in found:
        place = dominator(each, found)
        as_good = [other for other in found if all(map(float.__le__, figures(other), figures(each)))]
        assert (place is None) == all(figures(other) == figures(each) for other in as_good)
        assert place is None or found[place].dominates(each)


def test_nothing_is_said_where_something_is_not_known() -> None:
    """A price that is not known is no reason for or against; nor are latencies of which one side has none."""
    known = Standing(cost=1.0, rate_per_accelerator_per_s=9.0, alone_s=(0.1,))
    unpriced = Standing(cost=inf, rate_per_accelerator_per_s=1.0, alone_s=(0.2,))
    untimed = Standing(cost=2.0, rate_per_accelerator_per_s=1.0, alone_s=())

    for other in (unpriced, untimed):
        assert not known.dominates(other)
        assert not other.dominates(known)


def test_a_few_percent_alone_are_no_difference() -> None:
    """Bounds on a request alone are not sharper than that: 3% slower and cheaper dominates, 10% slower does not."""
    dear = Standing(cost=2.0, rate_per_accelerator_per_s=1.0, alone_s=(0.100,))

    assert Standing(cost=1.0, rate_per_accelerator_per_s=1.0, alone_s=(0.103,)).dominates(dear)
    assert not Standing(cost=1.0, rate_per_accelerator_per_s=1.0, alone_s=(0.110,)).dominates(dear)
    assert not Standing(cost=2.0, rate_per_accelerator_per_s=1.0, alone_s=(0.098,)).dominates(dear)
