"""The least time of a unit of work is below that of any mixture of steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.plan.least import least_per_unit, ranges_from_top, sizes

kinds = st.tuples(st.floats(0.01, 10), st.floats(0, 2), st.floats(2, 50))
mixtures = st.lists(st.tuples(kinds, st.floats(0.01, 1), st.floats(0, 1)), min_size=1, max_size=5)


@given(mixtures, st.lists(kinds, max_size=3))
def test_no_mixture_is_cheaper(
    mixture: list[tuple[tuple[float, float, float], float, float]], more: list[tuple[float, float, float]]
) -> None:
    """Any shares of any kinds, each reading what it may, cost at least as much, whatever other kinds there are."""
    reads = np.array([1 + place * (most - 1) for (_, _, most), _, place in mixture])
    shares = np.array([share for _, share, _ in mixture])
    mean = float((reads * shares).sum() / shares.sum())
    values, slopes, most = (np.array(column) for column in zip(*([kind for kind, _, _ in mixture] + more), strict=True))
    own = values[: len(mixture)] + slopes[: len(mixture)] * (reads - mean)
    cost = float((own * shares).sum() / shares.sum())

    assert least_per_unit(values, slopes, mean=mean, least=1.0, most=most) <= max(cost, 0.0) * (1 + 1e-9) + 1e-12


def test_a_pool_that_holds_few_tokens_keeps_batches_small() -> None:
    """Steps of 1 and of 10 tokens take 1 s each; ten read 5 at most, and the mean is 5: a tenth of a second.

    If ten read 1 at most and one reads 9, only half of the tokens can be in the large steps: 0.5 x 0.1 + 0.5 x 1.
    """
    values, flat = np.array([1.0, 0.1]), np.zeros(2)

    assert least_per_unit(values, flat, mean=5.0, least=1.0, most=np.array([9.0, 5.0])) == pytest.approx(0.1)
    assert least_per_unit(values, flat, mean=5.0, least=1.0, most=np.array([9.0, 1.0])) == pytest.approx(0.55, rel=0.02)


@pytest.mark.parametrize("most", [1, 2, 7, 256, 8192])
def test_ranges_cover_every_size_once(most: int) -> None:
    """Each whole number up to the largest lies in exactly one range."""
    for ranges in (sizes(most), sorted(ranges_from_top(most))):
        assert [number for first, last in ranges for number in range(first, last + 1)] == list(range(1, most + 1))
