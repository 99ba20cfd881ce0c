"""Divergence from truncated lists, against whole distributions."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.measure.quality.divergence import divergence


@given(st.integers(0, 2**32 - 1), st.integers(6, 40), st.integers(1, 6))
def test_the_bounds_hold_for_any_two_distributions(seed: int, vocabulary: int, shown: int) -> None:
    """KL of whole distributions is never below the bound, total variation always between its two."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(vocabulary, 0.3), 2) * (1 - 1e-9 * vocabulary) + 1e-9
    lists = []
    for shares in (p, q):
        top = np.argsort(shares)[::-1][:shown]
        lists.append({bytes([token]): float(shares[token]) for token in top})
    found = divergence(*lists)
    if found is None:
        assert not set(lists[0]) & set(lists[1])
        return
    whole, apart = float((p * np.log(p / q)).sum()), float(np.abs(p - q).sum()) / 2
    assert found.kl_low <= whole + 1e-4
    assert found.tv_low - 1e-9 <= apart <= found.tv_high + 1e-9


def test_complete_lists_give_the_divergence_itself() -> None:
    """With the whole vocabulary returned, the bound is KL as it is defined, here worked by hand."""
    found = divergence({b"x": 0.5, b"y": 0.5}, {b"x": 0.9, b"y": 0.1})
    assert found is not None
    assert found.kl_low == pytest.approx(0.5 * log(0.5 / 0.9) + 0.5 * log(0.5 / 0.1))
    assert (found.tv_low, found.tv_high) == pytest.approx((0.4, 0.4))
    assert found.unseen == 0


def test_equal_distributions_do_not_diverge() -> None:
    """The same list twice is at no distance, but for what lies beyond it."""
    shares = {b"x": 0.7, b"y": 0.1}
    found = divergence(shares, shares)
    assert found is not None
    assert (found.kl_low, found.tv_low) == (0.0, 0.0)
    assert found.tv_high == pytest.approx(0.2)


def test_lists_without_a_token_in_common_tell_nothing() -> None:
    """Where no token is in both, nothing is said."""
    assert divergence({b"x": 0.9}, {b"y": 0.9}) is None
