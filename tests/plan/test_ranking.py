"""Four questions, four orders; the fewest accelerators and the most goodput of each are not mixed up."""

from __future__ import annotations

import pytest
from tests.plan.made import candidate, weighed

from servewise.plan.cost import Cost, cost_of
from servewise.plan.ranking import measure, ranked
from servewise.plan.weighing import Weighed

ONE, TWO, FOUR = candidate(count=1), candidate(count=2), candidate(count=4)
FOUND = [weighed(ONE, 1.0), weighed(TWO, 2.6), weighed(FOUR, 5.0)]  # per accelerator 1.0, 1.3, 1.25


def order(*, rate: float | None, price: float | None) -> list[int]:
    """The accelerators of the ranked candidates."""

    def cost(found: Weighed) -> Cost:
        return cost_of(
            max_rate_per_s=found.rate_per_s,
            mean_output_tokens=100,
            accelerators=found.candidate.accelerators,
            usd_per_accelerator_hour=price,
            rate_per_s=rate,
        )

    by = measure(priced=price is not None, rate_asked=rate is not None)
    return [each.candidate.accelerators for each in ranked(FOUND, cost, by)]


@pytest.mark.parametrize("price", [None, 2.0])
def test_without_a_rate_the_most_per_accelerator_wins(price: float | None) -> None:
    """At equal prices the cheapest token is the highest rate per accelerator: 2.6 on two."""
    assert order(rate=None, price=price) == [2, 4, 1]


@pytest.mark.parametrize("price", [None, 2.0])
def test_with_a_small_rate_the_fewest_accelerators_win(price: float | None) -> None:
    """0.9 requests/s fit on one accelerator, however good larger replicas are per accelerator."""
    assert order(rate=0.9, price=price) == [1, 2, 4]


def test_with_a_rate_whole_replicas_count() -> None:
    """For 4.9 requests/s: five of one, two of two (four accelerators), one of four: the last two tie on cost.

    Of equals the one with more headroom leads: 2 x 2.6 = 5.2 against 5.0.
    """
    assert order(rate=4.9, price=2.0) == [2, 4, 1]


def test_an_unknown_price_comes_last() -> None:
    """Where some prices are known, a candidate without one cannot be called cheaper."""
    prices = {1: None, 2: 2.0, 4: 9.0}

    def cost(found: Weighed) -> Cost:
        return cost_of(
            max_rate_per_s=found.rate_per_s,
            mean_output_tokens=100,
            accelerators=found.candidate.accelerators,
            usd_per_accelerator_hour=prices[found.candidate.accelerators],
        )

    found = ranked(FOUND, cost, measure(priced=True, rate_asked=False))
    assert [each.candidate.accelerators for each in found] == [2, 4, 1]
