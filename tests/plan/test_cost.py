"""Cost by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.plan.cost import cost_of


def test_cost_of_a_token_at_the_highest_rate() -> None:
    """Two accelerators at $3.60/h are $0.002/s; at 4 requests/s of 250 tokens, 1,000 tokens/s: $2 a million."""
    found = cost_of(max_rate_per_s=4, mean_output_tokens=250, accelerators=2, usd_per_accelerator_hour=3.6)

    assert found.usd_per_million_output_tokens == pytest.approx(2.0)
    assert found.usd_per_hour == pytest.approx(7.2)
    assert found.rate_per_accelerator_per_s == 2.0
    assert (found.replicas, found.accelerators) == (1, 2)


def test_replicas_carry_the_rate_and_idle_ones_cost_too() -> None:
    """9 requests/s on replicas good for 4 take three of them, half a replica idle; the tokens of 9/s pay for all."""
    found = cost_of(
        max_rate_per_s=4, mean_output_tokens=250, accelerators=2, usd_per_accelerator_hour=3.6, rate_per_s=9
    )

    assert (found.replicas, found.accelerators) == (3, 6)
    assert found.usd_per_million_output_tokens == pytest.approx(6 * 3.6 / 3600 / (9 * 250) * 1e6)


def test_an_unknown_price_stays_unknown() -> None:
    """No price, no dollars: nothing is guessed."""
    found = cost_of(max_rate_per_s=4, mean_output_tokens=250, accelerators=2, usd_per_accelerator_hour=None)

    assert found.usd_per_hour is None
    assert found.usd_per_million_output_tokens is None


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_replicas_are_as_few_as_carry_it(rate: float, highest: float) -> None:
    """The replicas carry the rate, and one fewer would not."""
    found = cost_of(
        max_rate_per_s=highest, mean_output_tokens=1, accelerators=1, usd_per_accelerator_hour=None, rate_per_s=rate
    )

    assert found.replicas * highest >= rate * (1 - 1e-6)
    assert found.replicas == 1 or (found.replicas - 1) * highest < rate
