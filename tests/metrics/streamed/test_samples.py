"""What is computed over columns on disk is what NumPy and ``metrics.sample`` make of the same numbers, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.metrics import sample
from servewise.metrics.streamed.ranks import Ranks
from servewise.metrics.streamed.samples import percentiles, weighted_mean
from servewise.metrics.streamed.sums import block_totals, total
from servewise.scratch import Column, Scratch

SIZES = (1, 7, 8, 20, 127, 128, 129, 1_000, 4_099, 70_001)
CASES = [(size, piece) for piece in (128, 1_000, 65_536) for size in SIZES if size < 100 * piece]


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    """A folder for columns."""
    with Scratch() as found:
        yield found


def _column(scratch: Scratch, values: np.typing.NDArray[np.float64]) -> Column:
    column = scratch.column()
    column.append(values)
    return column


@pytest.mark.parametrize(("size", "piece"), CASES)
def test_sums_by_part_are_numpys_to_the_last_bit(scratch: Scratch, size: int, piece: int) -> None:
    """Lognormal numbers over eight decades: the sum of the parts is ``np.sum``, the sums of blocks ``reduceat``."""
    values = np.random.default_rng(size).lognormal(0, 4, size)
    starts = np.unique(np.arange(20) * size // 20)
    column = _column(scratch, values)
    assert total(column, piece=piece) == float(values.sum())
    found = block_totals(lambda start, stop: [column.read(start, stop)], starts, size, piece=piece)
    assert found[0].tolist() == np.add.reduceat(values, starts).tolist()


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1e9, 1e9) | st.sampled_from([0.0, -1.5, 2.0, 2.0]), min_size=1, max_size=200),
    seed=st.integers(0, 9),
)
def test_order_statistics_are_those_of_the_sorted_sample(values: list[float], seed: int) -> None:
    """Negative numbers, ties and weights included: each index falls on what stands there in the sorted sample."""
    weights = np.random.default_rng(seed).integers(1, 5, len(values)).astype(float)
    repeated = np.sort(np.repeat(values, weights.astype(int)))
    indices = [0, len(repeated) // 3, len(repeated) // 2, len(repeated) - 1, len(repeated) + 5]
    with Scratch() as scratch:
        found = Ranks(_column(scratch, np.array(values)), _column(scratch, weights), piece=17)
        assert found.total == len(repeated)
        assert found.at(indices) == [repeated[min(index, len(repeated) - 1)] for index in indices]


@pytest.mark.parametrize(("size", "piece"), CASES)
def test_percentiles_and_their_intervals_are_equal(scratch: Scratch, size: int, piece: int) -> None:
    """Of values with ties, in one heavy tail, plain and weighted by thousandths of a token: all that is told."""
    rng = np.random.default_rng(size)
    values = np.round(rng.lognormal(0, 1.5, size), 3)
    weights = rng.integers(1, 3_000_000, size) / 2.0**20
    column = _column(scratch, values)
    assert percentiles(column, piece=piece) == sample.percentiles(values)
    assert percentiles(column, _column(scratch, weights), piece=piece) == sample.percentiles(values, weights)


@pytest.mark.parametrize(("size", "piece"), CASES)
def test_a_weighted_mean_and_its_interval_are_equal(scratch: Scratch, size: int, piece: int) -> None:
    """Shares weighted by numbers of steps, as the utilisation is."""
    rng = np.random.default_rng(size)
    values, weights = rng.integers(0, 9, size) / 8, rng.integers(1, 400, size).astype(float)
    column = _column(scratch, values)
    found = weighted_mean(column.read, _column(scratch, weights), piece=piece)
    assert found == sample.weighted_mean(values, weights)


def test_an_empty_sample_is_empty(scratch: Scratch) -> None:
    """No values, no percentiles; no weight, no mean."""
    assert percentiles(scratch.column()).n == 0
    assert np.isnan(weighted_mean(scratch.column().read, scratch.column())[0])


def test_a_sample_of_one_block_has_no_interval_either(scratch: Scratch) -> None:
    """25 gaps of which the first stands for a million: what is told is what ``metrics.sample`` tells."""
    values, weights = np.arange(25.0), np.r_[1e6, np.ones(24)]
    column, weighing = _column(scratch, values), _column(scratch, weights)
    assert percentiles(column, weighing) == sample.percentiles(values, weights)
    assert weighted_mean(column.read, weighing) == sample.weighted_mean(values, weights)
