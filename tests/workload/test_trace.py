"""A trace as a workload: its rate, scaling, repeating."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from servewise.errors import InputError
from servewise.workload.traces.trace import Recorded, Trace
from servewise.workload.workload import Workload


def trace(times: list[float], blocks: list[list[int]] | None = None) -> Trace:
    """A trace of requests at ``times``, with one block id list each."""
    ids = blocks or [[] for _ in times]
    flat = [each for row in ids for each in row]
    return Trace(
        recorded=Recorded(
            arrival_s=np.array(times),
            prompt_tokens=np.arange(1, len(times) + 1),
            output_tokens=np.full(len(times), 7),
            offsets=np.cumsum([0, *map(len, ids)]),
            blocks=np.array(flat, np.int64),
            distinct_blocks=len(set(flat)),
        ),
        name="made",
        hash_block_tokens=16 if blocks else None,
    )


def test_rate_is_gaps_over_time() -> None:
    """Four requests in 6 s are three gaps: 0.5/s, whatever their pattern."""
    assert trace([0, 1, 1, 6]).rate_per_s == 0.5


def test_at_rate_scales_times_and_keeps_the_pattern() -> None:
    """At four times the rate, times are a quarter; twice in a row is as once; back again is exact to rounding."""
    workload: Workload = trace([0, 1, 1, 6])
    assert [r.arrival_s for r in workload.at_rate(2.0).requests(0)] == [0, 0.25, 0.25, 1.5]
    assert [r.arrival_s for r in workload.at_rate(9.0).at_rate(2.0).requests(0)] == pytest.approx([0, 0.25, 0.25, 1.5])
    assert workload.at_rate(2.0).rate_per_s == pytest.approx(2.0)


@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf])
def test_a_rate_that_is_no_rate_is_refused(rate: float) -> None:
    """A rate of zero, or none at all, is an InputError."""
    with pytest.raises(InputError, match="rate"):
        trace([0, 1]).at_rate(rate)


def test_all_at_once_has_no_rate_to_scale() -> None:
    """Requests at one moment are a workload (an offline batch), but no rate can be set."""
    burst = trace([0.0, 0.0])
    assert burst.rate_per_s == math.inf
    with pytest.raises(InputError, match="one moment"):
        burst.at_rate(1.0)
    assert [r.arrival_s for r in burst.tiled(5).requests(0)] == [0.0] * 5


def test_tiling_repeats_one_mean_gap_after_the_end() -> None:
    """Ten requests of a trace of 4 over 6 s repeat every 8 s, so that the rate stays; serials go on."""
    made = list(trace([0, 1, 1, 6]).tiled(10).requests(0))
    assert [r.arrival_s for r in made] == [0, 1, 1, 6, 8, 9, 9, 14, 16, 17]
    assert [r.serial for r in made] == list(range(10))
    assert [r.prompt_tokens for r in made] == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
    assert all(a.arrival_s <= b.arrival_s for a, b in itertools.pairwise(made))


def test_chunks_of_a_long_trace_join() -> None:
    """A trace longer than a chunk, repeated and cut, yields every row once, in order, with its own blocks."""
    count = 20_000
    long = trace([float(i) for i in range(count)], [[i, count] for i in range(count)])
    made = list(long.tiled(count + 17_000).requests(0))
    assert [r.serial for r in made] == list(range(count + 17_000))
    assert [r.arrival_s for r in made] == [float(i) for i in range(count + 17_000)]
    assert [r.prompt_tokens for r in made] == [i % count + 1 for i in range(count + 17_000)]
    assert [r.block_hashes[0] for r in made] == [i % count + i // count * (count + 1) for i in range(count + 17_000)]


def test_tiles_are_other_users_unless_asked() -> None:
    """Each repetition has blocks of its own; with ``fresh_blocks=False`` the same prompts come again."""
    once = trace([0, 1], [[0, 1], [0, 2]])
    fresh = [r.block_hashes for r in once.tiled(4).requests(0)]
    again = [r.block_hashes for r in once.tiled(4, fresh_blocks=False).requests(0)]
    assert fresh == [(0, 1), (0, 2), (3, 4), (3, 5)]
    assert again == [(0, 1), (0, 2), (0, 1), (0, 2)]


def test_a_count_below_the_length_cuts() -> None:
    """The first 3 of 4 requests, with the rate and means of those."""
    cut = trace([0, 1, 1, 6]).tiled(3)
    assert len(list(cut.requests(0))) == len(cut) == 3
    assert (cut.rate_per_s, cut.mean_prompt_tokens, cut.mean_output_tokens) == (2.0, 2.0, 7.0)


def test_lengths_as_distributions_are_the_recorded_ones() -> None:
    """Empirical lengths draw only recorded values."""
    drawn = trace([0, 1, 2]).prompt_lengths().draw(np.random.default_rng(0), 1000)
    assert set(drawn.tolist()) == {1, 2, 3}
