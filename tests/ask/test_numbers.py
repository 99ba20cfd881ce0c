"""Numbers that make no sense are refused by name."""

from __future__ import annotations

import math

import pytest

from servewise.ask.numbers import finite, positive, positives, share, whole, wholes
from servewise.errors import InputError


@pytest.mark.parametrize("value", [0, -1, 1.5, "8", None, True, 10**10, math.nan, float("inf")])
def test_counts_are_whole_and_positive(value: object) -> None:
    """Zero, fractions, text, booleans and absurdly many are no counts."""
    with pytest.raises(InputError, match=r"^batch: must be a whole number"):
        whole(value, "batch")


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, -math.inf, "1", True, 1e25, None])
def test_quantities_are_finite_and_positive(value: object) -> None:
    """NaN, infinities, zero, negatives, text and what no device has are no quantities."""
    with pytest.raises(InputError, match=r"^rate: must be"):
        positive(value, "rate")


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, "0.5"])
def test_shares_lie_between_nothing_and_all(value: object) -> None:
    """A share outside 0 to 1 is refused."""
    with pytest.raises(InputError, match=r"^acceptance: must be"):
        share(value, "acceptance")


def test_lists_keep_order_and_drop_repeats() -> None:
    """4, 1, 4 is 4, 1: each case is answered once, in the order asked."""
    assert wholes([4, 1, 4], "batch") == (4, 1)
    assert positives(2.5, "rate") == (2.5,)


def test_an_empty_list_is_refused() -> None:
    """No batch at all is a mistake, not an empty answer."""
    with pytest.raises(InputError, match="at least one"):
        wholes([], "batch")


def test_numbers_pass_as_they_are() -> None:
    """What makes sense comes back unchanged."""
    assert (whole(8, "x"), positive(0.5, "x"), share(0, "x"), finite(-2, "x")) == (8, 0.5, 0.0, -2.0)
